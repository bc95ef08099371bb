// Package plugs holds nothing but examples and tests: requests.Transport in what people use, which are go-github, a client
// that oapi-codegen has generated (package todos), and otelhttp. The tests run on virtual time.
package plugs
