#pragma once

/* The DLPack declarations live beside the other shared types; this file lets a client write <dlpack/dlpack.h>. */
#include <ovx/dlpack/dlpack.h>
