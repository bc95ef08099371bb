package conformance_test

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

// assertionCase is an assertion that holds or fails of an outcome.
type assertionCase struct {
	assertion string
	outcome   func() outcome
	holds     bool
}

// twice is an outcome of two requests, a second apart.
func twice() outcome {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	u := &url.URL{Scheme: "https", Host: "api.test", Path: "/todos", RawQuery: "page=2"}
	return outcome{
		sent: []sent{
			{method: "GET", url: u, header: http.Header{"Authorization": {"Bearer x"}}},
			{method: "POST", url: u, header: http.Header{}, body: []byte(`{"a":{"b":[1,2]}}`)},
		},
		received: []fakes.Received{{Began: at}, {Began: at.Add(time.Second)}},
		answers:  []answer{{503, nil}, {200, http.Header{"X-Total-Count": {"7"}, "X-Request-Id": {"req"}}}},
		result:   map[string]any{"n": 3},
	}
}

// failed is an outcome of one request, refused.
func failed() outcome {
	o := twice()
	o.sent, o.received, o.answers, o.result = o.sent[:1], o.received[:1], o.answers[:1], nil
	o.err = &requests.Error{
		Code: requests.CodeAPI, Message: "it is busy", Status: 503, Retryable: true, RetryAfter: 2 * time.Second, RequestID: "req",
		FieldErrors: map[string][]string{"f": {"m"}},
	}
	return o
}

// unsent is an outcome without a request.
func unsent() outcome { return outcome{err: errors.New("no requests.Error")} }

var assertionCases = map[string][]assertionCase{
	"requestCount": {{`{"expected":2}`, twice, true}, {`{"expected":3}`, twice, false}, {`{}`, twice, false}},
	"delayBetweenRequests": {
		{`{"min":1000}`, twice, true},
		{`{"min":1000.000001}`, twice, false},
		{`{"min":1000,"max":1000,"index":0}`, twice, true},
		{`{"max":999.999999}`, twice, false},
		{`{"min":1,"index":1}`, twice, false},
		{`{"min":1,"index":-1}`, twice, false},
		{`{"min":0}`, failed, false},
		{`{}`, twice, false},
	},
	"statusCode": {
		{`{"expected":200}`, twice, true},
		{`{"expected":503}`, failed, true},
		{`{"expected":503}`, twice, false},
		{`{"expected":200}`, unsent, false},
	},
	"responseStatus": {{`{"expected":200}`, twice, true}, {`{"expected":503}`, twice, false}, {`{"expected":0}`, unsent, false}},
	"responseBody": {
		{`{"path":"n","expected":3}`, twice, true},
		{`{"path":"n","expected":"3"}`, twice, false},
		{`{"path":"m","expected":null}`, twice, false},
		{`{"path":"n","expected":3}`, failed, false},
	},
	"responseMeta": {
		{`{"path":"totalCount","expected":7}`, twice, true},
		{`{"path":"requestId","expected":"req"}`, twice, true},
		{`{"path":"totalCount","expected":0}`, failed, false},
		{`{"path":"truncated","expected":false}`, twice, false},
		{`{"path":"totalCount","expected":7}`, unsent, false},
	},
	"headerValue":   {{`{"path":"x-total-count","expected":"7"}`, twice, true}, {`{"path":"ETag","expected":"7"}`, twice, false}, {`{}`, unsent, false}},
	"headerPresent": {{`{"path":"authorization"}`, twice, true}, {`{"path":"Authorization","index":1}`, twice, false}, {`{"path":"Authorization","index":5}`, twice, false}, {`{}`, twice, false}},
	"headerAbsent":  {{`{"path":"Authorization","index":-1}`, twice, true}, {`{"path":"authorization"}`, twice, false}, {`{"path":"Authorization","index":-3}`, twice, false}},
	"headerInjected": {
		{`{"path":"Authorization","expected":"Bearer x"}`, twice, true},
		{`{"path":"Authorization","expected":"Bearer y"}`, twice, false},
		{`{"path":"Cookie","expected":""}`, twice, false},
	},
	"requestPath": {
		{`{"expected":"/todos"}`, twice, true},
		{`{"expected":"/todos?page=2"}`, twice, true},
		{`{"expected":"/todos?page=1"}`, twice, false},
		{`{"expected":7}`, twice, false},
		{`{"expected":"/todos"}`, unsent, false},
	},
	"requestMethod": {{`{"expected":"POST","index":1}`, twice, true}, {`{"expected":"POST"}`, twice, false}, {`{"expected":"GET"}`, unsent, false}},
	"requestBody": {
		{`{"path":"a.b.1","expected":2,"index":-1}`, twice, true},
		{`{"path":"$.a.b","expected":[1,2],"index":-1}`, twice, true},
		{`{"path":"a.b.2","expected":null,"index":-1}`, twice, false},
		{`{"path":"a.b.c","expected":null,"index":-1}`, twice, false},
		{`{"path":"a","expected":1}`, twice, false},
		{`{"path":"a","expected":1}`, unsent, false},
	},
	"requestBodyAbsent": {
		{`{"path":"a.c","index":1}`, twice, true},
		{`{"path":"a.b"}`, twice, true},
		{`{"path":"a.b","index":1}`, twice, false},
		{`{"index":1}`, twice, false},
		{`{"path":"a"}`, unsent, false},
	},
	"requestScheme": {{`{"expected":"https"}`, twice, true}, {`{"expected":"http"}`, twice, false}, {`{"expected":"https"}`, unsent, false}},
	"urlOrigin":     {{`{"expected":"https://api.test"}`, twice, true}, {`{"expected":"https://api.test:8443"}`, twice, false}, {`{"expected":""}`, unsent, false}},
	"noError":       {{`{}`, twice, true}, {`{}`, failed, false}},
	"errorRaised":   {{`{}`, failed, true}, {`{}`, twice, false}},
	"errorType":     {{`{"expected":"api_error"}`, failed, true}, {`{"expected":"network"}`, failed, false}, {`{"expected":""}`, twice, false}},
	"errorCode":     {{`{"expected":"api_error"}`, failed, true}, {`{"expected":"usage"}`, failed, false}, {`{"expected":"usage"}`, unsent, false}},
	"errorMessage":  {{`{"expected":"busy"}`, failed, true}, {`{"expected":"lazy"}`, failed, false}, {`{"expected":""}`, failed, false}, {`{"expected":"busy"}`, twice, false}},
	"errorField": {
		{`{"path":"httpStatus","expected":503}`, failed, true},
		{`{"path":"retryable","expected":true}`, failed, true},
		{`{"path":"retryAfter","expected":2}`, failed, true},
		{`{"path":"requestId","expected":"req"}`, failed, true},
		{`{"path":"exitCode","expected":7}`, failed, true},
		{`{"path":"message","expected":"it is busy"}`, failed, true},
		{`{"path":"hint","expected":""}`, failed, true},
		{`{"path":"code","expected":"api_error"}`, failed, true},
		{`{"path":"fieldErrors","expected":{"f":["m"]}}`, failed, true},
		{`{"path":"retryable","expected":false}`, failed, false},
		{`{"path":"colour","expected":null}`, failed, false},
		{`{"path":"httpStatus","expected":503}`, unsent, false},
	},
}
