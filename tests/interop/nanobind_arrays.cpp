// nanobind_arrays.cpp - arrays as modules made with nanobind take them and give them.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

namespace nb = nanobind;

// Keeps an array that was taken, as a C++ object would.
template <typename Array>
struct Kept {
  Array array;

  std::uintptr_t address() const { return (std::uintptr_t)array.data(); }

  nb::tuple shape() const {
    nb::list extents;
    for (size_t axis = 0; axis < array.ndim(); axis++) extents.append(array.shape(axis));
    return nb::tuple(extents);
  }
};

using Any = nb::ndarray<>;
using ReadOnly = nb::ndarray<nb::ro>;

NB_MODULE(nanobind_arrays, m) {
  nb::class_<Kept<Any>>(m, "Kept")
      .def("address", &Kept<Any>::address)
      .def_prop_ro("shape", &Kept<Any>::shape)
      .def("write", [](Kept<Any> &self, double value) { *(double *)self.array.data() = value; });
  nb::class_<Kept<ReadOnly>>(m, "KeptReadOnly")
      .def("address", &Kept<ReadOnly>::address)
      .def_prop_ro("shape", &Kept<ReadOnly>::shape);

  // An argument without nb::ro may be written to: what is read-only must be refused for it.
  m.def("take", [](Any array) { return Kept<Any>{array}; }, nb::arg("array").noconvert());
  m.def("take_read_only", [](ReadOnly array) { return Kept<ReadOnly>{array}; }, nb::arg("array").noconvert());

  // (address, array of nanobind's own) over rows x width doubles 0, 1, 2 ..., which it deletes.
  m.def("make", [](size_t rows, size_t width, bool read_only) {
    double *numbers = new double[rows * width];
    for (size_t i = 0; i < rows * width; i++) numbers[i] = (double)i;
    nb::capsule owner(numbers, [](void *p) noexcept { delete[] (double *)p; });
    size_t shape[2] = {rows, width};
    nb::object made =
        read_only ? nb::cast(nb::ndarray<nb::array_api, const double, nb::ndim<2>>(numbers, 2, shape, owner))
                  : nb::cast(nb::ndarray<nb::array_api, double, nb::ndim<2>>(numbers, 2, shape, owner));
    return nb::make_tuple((std::uintptr_t)numbers, made);
  });
}
