// Package ownfile keeps small secrets in files that only their owner can read, each written whole or not at all, and
// locks that die with the process that holds them. It knows nothing of what the files hold.
package ownfile
