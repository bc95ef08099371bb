// Package todos is a client that oapi-codegen has generated, and the table of the same API's operations that
// `heed operations` has, both from one document.
package todos

//go:generate go tool oapi-codegen -generate types,client -package todos -o client.go openapi.yaml
//go:generate go tool heed operations openapi.yaml -o operations.go
