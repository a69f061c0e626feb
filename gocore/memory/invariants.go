//go:build invariants

package memory

// #cgo CFLAGS: -DOV_INVARIANTS
import "C"
