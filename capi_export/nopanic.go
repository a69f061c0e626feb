//go:build !faults

package main

// panicIfTold is where the test build provokes a panic (panic.go). No library that is shipped has it.
func panicIfTold() {}
