/*
 * dlpack.h - the DLPack tensor exchange ABI, version 1.3, as plain C.
 *
 * DLPack is an open standard of the DLPack project (https://github.com/dmlc/dlpack), published under the Apache
 * License, Version 2.0. The names, numbers and memory layouts below are that project's public ABI, written down again
 * here so that C clients find complete typedefs; the wording is ours. The include guard is the one of the original
 * header, so that a program which brings its own copy and one which uses this file can be the same program: whichever
 * comes first is used.
 *
 * Layouts are part of the ABI and are given for LP64 systems (pointers of 8 bytes).
 */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define DLPACK_EXTERN_C extern "C"
#else
#define DLPACK_EXTERN_C
#endif

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3

/* Bits of DLManagedTensorVersioned::flags. A consumer ignores the bits that it does not know. */
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)              /* the consumer must not write to the data */
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)              /* the producer made a copy for this exchange */
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL) /* sub-byte elements take a whole byte each */

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the structures that a producer filled. Another major version means another layout: then only the deleter
 * may be used. A higher minor version only adds flags and codes. 8 bytes. */
typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

/* Kind of memory that a data pointer refers to. */
#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1,          /* ordinary host memory */
  kDLCUDA = 2,         /* CUDA device memory */
  kDLCUDAHost = 3,     /* host memory pinned by CUDA */
  kDLOpenCL = 4,       /* OpenCL device memory */
  kDLVulkan = 7,       /* Vulkan buffer */
  kDLMetal = 8,        /* Metal buffer */
  kDLVPI = 9,          /* Verilog simulator buffer */
  kDLROCM = 10,        /* ROCm device memory */
  kDLROCMHost = 11,    /* host memory pinned by ROCm */
  kDLExtDev = 12,      /* a device outside this list, for experiments */
  kDLCUDAManaged = 13, /* CUDA managed (unified) memory */
  kDLOneAPI = 14,      /* oneAPI unified shared memory */
  kDLWebGPU = 15,      /* WebGPU buffer */
  kDLHexagon = 16,     /* Qualcomm Hexagon */
  kDLMAIA = 17,        /* Microsoft MAIA */
  kDLTrn = 18          /* AWS Trainium */
} DLDeviceType;

/* One device. device_id is 0 for host, pinned and managed memory. 8 bytes. */
typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

/* Meaning of DLDataType::code. */
typedef enum {
  kDLInt = 0U,          /* signed integer */
  kDLUInt = 1U,         /* unsigned integer */
  kDLFloat = 2U,        /* IEEE 754 floating point */
  kDLOpaqueHandle = 3U, /* a value without meaning for arithmetic */
  kDLBfloat = 4U,       /* bfloat16 */
  kDLComplex = 5U,      /* complex number: real, then imaginary part, of bits/2 each */
  kDLBool = 6U,         /* truth value, 8 bits, 0 or 1 */
  kDLFloat8_e3m4 = 7U,
  kDLFloat8_e4m3 = 8U,
  kDLFloat8_e4m3b11fnuz = 9U,
  kDLFloat8_e4m3fn = 10U,
  kDLFloat8_e4m3fnuz = 11U,
  kDLFloat8_e5m2 = 12U,
  kDLFloat8_e5m2fnuz = 13U,
  kDLFloat8_e8m0fnu = 14U,
  kDLFloat6_e2m3fn = 15U, /* 6 bits, packed unless the padded flag is set */
  kDLFloat6_e3m2fn = 16U,
  kDLFloat4_e2m1fn = 17U /* 4 bits, packed unless the padded flag is set */
} DLDataTypeCode;

/* Type of one element: a tuple of `lanes` numbers of `bits` bits each, in native byte order. 4 bytes.
 * float32 = {kDLFloat, 32, 1}; a point of three float32 = {kDLFloat, 32, 3}; bool = {kDLBool, 8, 1}. */
typedef struct {
  uint8_t code; /* a DLDataTypeCode */
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

/* A tensor that is owned elsewhere: a description, not a lifetime. 48 bytes. */
typedef struct {
  void* data;           /* start of the allocation; the first element is byte_offset bytes further */
  DLDevice device;      /* where `data` points to */
  int32_t ndim;         /* number of dimensions; 0 = one element, then shape and strides may be NULL */
  DLDataType dtype;     /* type of one element */
  int64_t* shape;       /* ndim extents */
  int64_t* strides;     /* ndim steps, counted in elements (not bytes); NULL = compact, row-major */
  uint64_t byte_offset; /* bytes from `data` to the first element */
} DLTensor;

/* A tensor with its lifetime, the form from before version 1.0. The tensor comes first. 64 bytes. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;                             /* belongs to the producer */
  void (*deleter)(struct DLManagedTensor* self); /* ends the borrow, called once; NULL = nothing to do */
} DLManagedTensor;

/* A tensor with its lifetime, version and flags. The tensor comes last. 80 bytes. Everything up to and including
 * `flags` stays where it is in all versions, so that a foreign major version can still be given back through its
 * deleter. */
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;                                      /* belongs to the producer */
  void (*deleter)(struct DLManagedTensorVersioned* self); /* ends the borrow, called once; NULL = nothing to do */
  uint64_t flags;                                         /* DLPACK_FLAG_BITMASK_* */
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

/*
 * The exchange table: a producer type offers it, so that tensors cross between compiled Python extensions without a
 * Python call. Python finds it as a capsule named "dlpack_exchange_api" in the type attribute
 * __dlpack_c_exchange_api__. Python objects appear as void* because this header knows no Python.
 * The functions below return 0, or -1 with a Python exception set; they never throw and never synchronise a device.
 */

/* Allocates a tensor like `prototype` (device, dtype, shape). On failure calls SetError(error_ctx, kind, message) with
 * the name of a Python exception and returns -1. May be called without the interpreter lock. */
typedef int (*DLPackManagedTensorAllocator)(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                                            void (*SetError)(void* error_ctx, const char* kind, const char* message));

/* Exports `py_object`; the caller owns *out. */
typedef int (*DLPackManagedTensorFromPyObjectNoSync)(void* py_object, DLManagedTensorVersioned** out);

/* Makes a Python object of `tensor` and takes the tensor over; the caller owns the reference in *out_py_object. */
typedef int (*DLPackManagedTensorToPyObjectNoSync)(DLManagedTensorVersioned* tensor, void** out_py_object);

/* Describes `py_object` without taking a reference: *out is good until control returns to the interpreter. */
typedef int (*DLPackDLTensorFromPyObjectNoSync)(void* py_object, DLTensor* out);

/* Tells on which stream of the device the producer currently works; NULL in *out_current_stream where there is none. */
typedef int (*DLPackCurrentWorkStream)(DLDeviceType device_type, int32_t device_id, void** out_current_stream);

/* First part of every exchange table, of any version. 16 bytes. */
typedef struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  struct DLPackExchangeAPIHeader* prev_api; /* the table of an older major version, or NULL */
} DLPackExchangeAPIHeader;

/* The exchange table itself. It lives as long as the process. 56 bytes. */
typedef struct DLPackExchangeAPI {
  DLPackExchangeAPIHeader header;
  DLPackManagedTensorAllocator managed_tensor_allocator;
  DLPackManagedTensorFromPyObjectNoSync managed_tensor_from_py_object_no_sync;
  DLPackManagedTensorToPyObjectNoSync managed_tensor_to_py_object_no_sync;
  DLPackDLTensorFromPyObjectNoSync dltensor_from_py_object_no_sync; /* may be NULL */
  DLPackCurrentWorkStream current_work_stream;
} DLPackExchangeAPI;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DLPACK_DLPACK_H_ */
