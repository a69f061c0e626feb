package ovstage_test

import (
	"fmt"
	"log"

	"ovstage.dev/ovstage"
)

// The ten lines of the README.
func Example() {
	stage := ovstage.New("example")
	defer stage.Close()
	robots, err := stage.Prims("/A", "/B")
	check(err)
	check(ovstage.Write(robots, "velocity", 1, make([][3]float32, 2)))           // at ordinal 1
	check(ovstage.Map(robots, "velocity", 2, func(velocity [][3]float32) error { // a buffer that becomes the column
		velocity[0][2] = -9.81 // the other five values stay
		return nil
	}))
	check(stage.Seal(2))
	velocity, err := ovstage.Read[[3]float32](robots, "velocity") // a snapshot, valid for as long as you hold it
	check(err)
	for path, value := range velocity.All() {
		fmt.Println(path, value)
	}
	// Output:
	// /A [0 0 -9.81]
	// /B [0 0 0]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
