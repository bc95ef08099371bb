package plugs_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/interop/plugs/todos"
	"github.com/heed-sdk/heed/requests"
)

const todosHost = "api.example.com"

func (r *rig) todos(tr http.RoundTripper) *todos.ClientWithResponses {
	r.Helper()
	c, err := todos.NewClientWithResponses("https://"+todosHost+"/v1", todos.WithHTTPClient(&http.Client{Transport: tr}))
	if err != nil {
		r.Fatal(err)
	}
	return c
}

func (r *rig) declared() *requests.Transport {
	tr := r.transport()
	tr.Operations = todos.Operations
	return tr
}

// wantSame checks that the API has received the same request each time.
func (r *rig) wantSame(method, url string) {
	r.Helper()
	all := r.api.Received()
	for i, got := range all {
		if got.Method != method || got.URL != url || string(got.Body) != string(all[0].Body) {
			r.Errorf("attempt %d was %s %s %q", i+1, got.Method, got.URL, got.Body)
		}
	}
}

// TestCompleteTodo repeats a POST as its operation declares: five attempts, from two seconds, and on 500 too.
func TestCompleteTodo(t *testing.T) {
	t.Parallel()
	run(t, todosHost, []fakes.Answer{
		answer(500, ""), answer(503, "", "Retry-After", "30"), {Drop: true}, answer(429, "", "Retry-After", "1"), answer(204, ""),
	}, func(r *rig) {
		resp, err := r.todos(r.declared()).CompleteTodoWithResponse(r.Context(), "7")
		if err != nil || resp.StatusCode() != http.StatusNoContent {
			r.Errorf("%v, %v", resp, err)
		}
		r.wantSame(http.MethodPost, "/v1/todos/7/completion")
		r.wantWaits(2*time.Second, 30*time.Second, 8*time.Second, time.Second)
	})
	// What is not declared is not repeated: the set is exhaustive.
	run(t, todosHost, []fakes.Answer{answer(502, "")}, func(r *rig) {
		resp, err := r.todos(r.declared()).CompleteTodoWithResponse(r.Context(), "7")
		if err != nil || resp.StatusCode() != http.StatusBadGateway {
			r.Errorf("%v, %v", resp, err)
		}
	})
}

// TestCreateTodo sends a POST once, of which the document says nothing, unless it carries a key.
func TestCreateTodo(t *testing.T) {
	t.Parallel()
	busy := answer(503, "", "Retry-After", "30")
	created := answer(201, `{"id":"8","title":"test"}`, "Content-Type", "application/json")
	run(t, todosHost, []fakes.Answer{busy}, func(r *rig) {
		resp, err := r.todos(r.declared()).CreateTodoWithResponse(r.Context(), todos.NewTodo{Title: "test"})
		if err != nil || resp.StatusCode() != http.StatusServiceUnavailable {
			r.Errorf("%v, %v", resp, err)
		}
	})
	run(t, todosHost, []fakes.Answer{{Drop: true}}, func(r *rig) {
		if resp, err := r.todos(r.declared()).CreateTodoWithResponse(r.Context(), todos.NewTodo{Title: "test"}); err == nil {
			r.Errorf("%v", resp)
		}
	})
	run(t, todosHost, []fakes.Answer{busy, created}, func(r *rig) {
		ctx := requests.WithIdempotencyKey(r.Context(), requests.KeyFrom("todo", "test"))
		resp, err := r.todos(r.declared()).CreateTodoWithResponse(ctx, todos.NewTodo{Title: "test"})
		if err != nil || resp.JSON201 == nil || resp.JSON201.Id != "8" {
			r.Errorf("%v, %v", resp, err)
		}
		r.wantSame(http.MethodPost, "/v1/todos")
		r.wantWaits(30 * time.Second)
		for _, got := range r.api.Received() {
			if got.Header.Get("Idempotency-Key") != requests.KeyFrom("todo", "test") {
				r.Errorf("sent %v", got.Header)
			}
		}
	})
}

// TestRenameTodo repeats a PUT, as the method says.
func TestRenameTodo(t *testing.T) {
	t.Parallel()
	renamed := answer(200, `{"id":"7","title":"better"}`, "Content-Type", "application/json")
	run(t, todosHost, []fakes.Answer{{Drop: true}, renamed}, func(r *rig) {
		resp, err := r.todos(r.declared()).RenameTodoWithResponse(r.Context(), "7", todos.NewTodo{Title: "better"})
		if err != nil || resp.JSON200 == nil || resp.JSON200.Title != "better" {
			r.Errorf("%v, %v", resp, err)
		}
		r.wantSame(http.MethodPut, "/v1/todos/7")
		r.wantWaits(time.Second)
	})
}
