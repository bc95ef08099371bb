// Package terminal has tests alone: of what is to be seen in a real terminal, which is tmux, and of the QR codes in it,
// which zbarimg reads.
package terminal
