// A module of its own: gorgonia.org/cu links libcuda and ends a process that has no GPU, so the product must not know it.
module ovstage-cuda-conformance

go 1.26

require (
	github.com/stretchr/testify v1.11.1
	gorgonia.org/cu v0.9.6
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/google/uuid v1.1.1 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
