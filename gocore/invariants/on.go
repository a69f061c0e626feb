//go:build invariants

package invariants

// Enabled says whether this build checks.
const Enabled = true
