// Package fakes has what Heed's tests run on: a clock that is stepped by the timers' names, an in-memory network that
// works inside a testing/synctest bubble, and scripted servers that enforce their protocol and record the instant of
// each request.
//
// Tests use it in one of two ways. In a bubble ([Bubble]) everything runs on the bubble's time: the SDK on the real
// clock, the servers on a [Network]. Outside a bubble a test gives the SDK a [Clock], awaits the timer it expects by its
// kind, and then advances.
package fakes
