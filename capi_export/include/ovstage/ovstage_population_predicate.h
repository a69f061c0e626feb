/*
 * ovstage_population_predicate.h - conditions by which population and export choose prims and properties.
 *
 * A predicate is a tree of plain structures, made by the functions below. All zero is NONE, which matches nothing. A
 * predicate with several values matches if one of them does; conditions that must all hold are joined with AND.
 *
 *     ovx_string_t types[] = {literal_to_ovx_string("Mesh"), literal_to_ovx_string("Sphere")};
 *     ovstage_population_prim_predicate_t shapes = ovstage_population_prim_predicate_is_a_type(types, 2);
 *     ovstage_population_prim_predicate_t others = ovstage_population_prim_predicate_not(&shapes);
 *
 * Nothing is copied: values and inner predicates belong to the caller and must live until the call that takes the
 * outermost predicate returns. The functions check nothing; a tree that makes no sense is refused by that call.
 */
#ifndef OVSTAGE_POPULATION_PREDICATE_H
#define OVSTAGE_POPULATION_PREDICATE_H

#include "ovstage_api/ovstage_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which prims a predicate matches. What each kind means is said at the function that makes it, below. */
typedef enum {
  OVSTAGE_POPULATION_PRIM_PREDICATE_NONE = 0,
  OVSTAGE_POPULATION_PRIM_PREDICATE_ALL = 1,
  OVSTAGE_POPULATION_PRIM_PREDICATE_AND = 2,
  OVSTAGE_POPULATION_PRIM_PREDICATE_OR = 3,
  OVSTAGE_POPULATION_PRIM_PREDICATE_NOT = 4,
  OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_PARENT = 5,
  OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_ANCESTOR = 6,
  OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_PROPERTY = 7,
  OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_TYPE = 8,
  OVSTAGE_POPULATION_PRIM_PREDICATE_IS_A_TYPE = 9,
  OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_SCHEMA = 10,
  OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_APPLIED_SCHEMA = 11,
  OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_APPLIED_SCHEMA_IN_NAMESPACE = 12,
  OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_PATH = 13,
  OVSTAGE_POPULATION_PRIM_PREDICATE_IS_UNDER_PATH = 14,
  OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_KIND = 15,
  OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_PURPOSE = 16,
  OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_METADATA = 17
} ovstage_population_prim_predicate_kind_t;

/* Which properties a predicate matches. */
typedef enum {
  OVSTAGE_POPULATION_PROPERTY_PREDICATE_NONE = 0,
  OVSTAGE_POPULATION_PROPERTY_PREDICATE_ALL = 1,
  OVSTAGE_POPULATION_PROPERTY_PREDICATE_AND = 2,
  OVSTAGE_POPULATION_PROPERTY_PREDICATE_OR = 3,
  OVSTAGE_POPULATION_PROPERTY_PREDICATE_NOT = 4,
  OVSTAGE_POPULATION_PROPERTY_PREDICATE_DECLARED_BY_SCHEMA = 5,
  OVSTAGE_POPULATION_PROPERTY_PREDICATE_HAS_NAME = 6,
  OVSTAGE_POPULATION_PROPERTY_PREDICATE_IN_NAMESPACE = 7,
  OVSTAGE_POPULATION_PROPERTY_PREDICATE_HAS_METADATA = 8,
  OVSTAGE_POPULATION_PROPERTY_PREDICATE_IS_ATTRIBUTE = 9,
  OVSTAGE_POPULATION_PROPERTY_PREDICATE_IS_RELATIONSHIP = 10,
  OVSTAGE_POPULATION_PROPERTY_PREDICATE_IS_CUSTOM = 11,
  OVSTAGE_POPULATION_PROPERTY_PREDICATE_IS_AUTHORED = 12
} ovstage_population_property_predicate_kind_t;

typedef struct ovstage_population_prim_predicate_t ovstage_population_prim_predicate_t;
typedef struct ovstage_population_property_predicate_t ovstage_population_property_predicate_t;

/* A condition on properties. 24 bytes. */
struct ovstage_population_property_predicate_t {
  ovstage_population_property_predicate_kind_t kind;
  union {
    const ovx_string_t* strings;
    const ovstage_population_property_predicate_t* subpredicates; /* AND, OR, NOT */
  } values;
  size_t value_count;
};

/* A condition on prims. 24 bytes. */
struct ovstage_population_prim_predicate_t {
  ovstage_population_prim_predicate_kind_t kind;
  union {
    const ovx_string_t* strings;
    const ovstage_population_prim_predicate_t* subpredicates;          /* AND, OR, NOT, HAS_PARENT, HAS_ANCESTOR */
    const ovstage_population_property_predicate_t* property_predicate; /* HAS_PROPERTY */
  } values;
  size_t value_count;
};

/* ---- Conditions on prims --------------------------------------------------------------------------------------- */

/* Matches nothing. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_none(void) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_NONE;
  predicate.values.strings = NULL;
  predicate.value_count = 0;
  return predicate;
}

/* Matches every prim. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_all(void) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_ALL;
  predicate.values.strings = NULL;
  predicate.value_count = 0;
  return predicate;
}

/* Matches where all of the inner predicates match. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_and(
    const ovstage_population_prim_predicate_t* subpredicates, size_t value_count) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_AND;
  predicate.values.subpredicates = subpredicates;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches where one of the inner predicates matches. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_or(
    const ovstage_population_prim_predicate_t* subpredicates, size_t value_count) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_OR;
  predicate.values.subpredicates = subpredicates;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches where the inner predicate does not. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_not(
    const ovstage_population_prim_predicate_t* subpredicate) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_NOT;
  predicate.values.subpredicates = subpredicate;
  predicate.value_count = 1;
  return predicate;
}

/* Matches where the parent matches the inner predicate. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_has_parent(
    const ovstage_population_prim_predicate_t* subpredicate) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_PARENT;
  predicate.values.subpredicates = subpredicate;
  predicate.value_count = 1;
  return predicate;
}

/* Matches where some ancestor matches the inner predicate. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_has_ancestor(
    const ovstage_population_prim_predicate_t* subpredicate) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_ANCESTOR;
  predicate.values.subpredicates = subpredicate;
  predicate.value_count = 1;
  return predicate;
}

/* Matches prims with a property - authored, custom or declared by a schema - that matches the inner predicate. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_has_property(
    const ovstage_population_property_predicate_t* property_predicate) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_PROPERTY;
  predicate.values.property_predicate = property_predicate;
  predicate.value_count = 1;
  return predicate;
}

/* Matches prims of exactly one of the named types. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_has_type(const ovx_string_t* values,
                                                                                             size_t value_count) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_TYPE;
  predicate.values.strings = values;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches prims of the named types and of types derived from them. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_is_a_type(
    const ovx_string_t* values, size_t value_count) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_IS_A_TYPE;
  predicate.values.strings = values;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches prims whose type name or one of whose applied API schemas is exactly one of the values. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_has_schema(
    const ovx_string_t* values, size_t value_count) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_SCHEMA;
  predicate.values.strings = values;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches prims with exactly one of the applied API schemas, ":instance" suffix included. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_has_applied_schema(
    const ovx_string_t* values, size_t value_count) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_APPLIED_SCHEMA;
  predicate.values.strings = values;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches prims with an applied API schema in one of the namespaces, cut at ":". */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_has_applied_schema_in_namespace(
    const ovx_string_t* values, size_t value_count) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_APPLIED_SCHEMA_IN_NAMESPACE;
  predicate.values.strings = values;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches prims with one of the paths: absolute prim paths, or "/". */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_has_path(const ovx_string_t* values,
                                                                                             size_t value_count) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_PATH;
  predicate.values.strings = values;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches prims at or below one of the paths, whole components compared. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_is_under_path(
    const ovx_string_t* values, size_t value_count) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_IS_UNDER_PATH;
  predicate.values.strings = values;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches prims of exactly one of the model kinds; derived kinds do not count. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_has_kind(const ovx_string_t* values,
                                                                                             size_t value_count) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_KIND;
  predicate.values.strings = values;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches imageable prims by their inherited purpose. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_has_purpose(
    const ovx_string_t* values, size_t value_count) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_PURPOSE;
  predicate.values.strings = values;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches where one of the metadata paths exists, whatever its value. */
static inline ovstage_population_prim_predicate_t ovstage_population_prim_predicate_has_metadata(
    const ovx_string_t* values, size_t value_count) {
  ovstage_population_prim_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_METADATA;
  predicate.values.strings = values;
  predicate.value_count = value_count;
  return predicate;
}

/* ---- Conditions on properties ---------------------------------------------------------------------------------- */

/* Matches nothing. */
static inline ovstage_population_property_predicate_t ovstage_population_property_predicate_none(void) {
  ovstage_population_property_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PROPERTY_PREDICATE_NONE;
  predicate.values.strings = NULL;
  predicate.value_count = 0;
  return predicate;
}

/* Matches every property. */
static inline ovstage_population_property_predicate_t ovstage_population_property_predicate_all(void) {
  ovstage_population_property_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PROPERTY_PREDICATE_ALL;
  predicate.values.strings = NULL;
  predicate.value_count = 0;
  return predicate;
}

/* Matches where all of the inner predicates match. */
static inline ovstage_population_property_predicate_t ovstage_population_property_predicate_and(
    const ovstage_population_property_predicate_t* subpredicates, size_t value_count) {
  ovstage_population_property_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PROPERTY_PREDICATE_AND;
  predicate.values.subpredicates = subpredicates;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches where one of the inner predicates matches. */
static inline ovstage_population_property_predicate_t ovstage_population_property_predicate_or(
    const ovstage_population_property_predicate_t* subpredicates, size_t value_count) {
  ovstage_population_property_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PROPERTY_PREDICATE_OR;
  predicate.values.subpredicates = subpredicates;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches where the inner predicate does not. */
static inline ovstage_population_property_predicate_t ovstage_population_property_predicate_not(
    const ovstage_population_property_predicate_t* subpredicate) {
  ovstage_population_property_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PROPERTY_PREDICATE_NOT;
  predicate.values.subpredicates = subpredicate;
  predicate.value_count = 1;
  return predicate;
}

/* Matches names that one of the schemas declares, whether it is applied to the prim or not. */
static inline ovstage_population_property_predicate_t ovstage_population_property_predicate_declared_by_schema(
    const ovx_string_t* values, size_t value_count) {
  ovstage_population_property_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PROPERTY_PREDICATE_DECLARED_BY_SCHEMA;
  predicate.values.strings = values;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches properties of exactly one of the names. */
static inline ovstage_population_property_predicate_t ovstage_population_property_predicate_has_name(
    const ovx_string_t* values, size_t value_count) {
  ovstage_population_property_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PROPERTY_PREDICATE_HAS_NAME;
  predicate.values.strings = values;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches properties in one of the namespaces, cut at ":". */
static inline ovstage_population_property_predicate_t ovstage_population_property_predicate_in_namespace(
    const ovx_string_t* values, size_t value_count) {
  ovstage_population_property_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PROPERTY_PREDICATE_IN_NAMESPACE;
  predicate.values.strings = values;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches where one of the metadata paths exists, whatever its value. */
static inline ovstage_population_property_predicate_t ovstage_population_property_predicate_has_metadata(
    const ovx_string_t* values, size_t value_count) {
  ovstage_population_property_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PROPERTY_PREDICATE_HAS_METADATA;
  predicate.values.strings = values;
  predicate.value_count = value_count;
  return predicate;
}

/* Matches attributes. */
static inline ovstage_population_property_predicate_t ovstage_population_property_predicate_is_attribute(void) {
  ovstage_population_property_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PROPERTY_PREDICATE_IS_ATTRIBUTE;
  predicate.values.strings = NULL;
  predicate.value_count = 0;
  return predicate;
}

/* Matches relationships. */
static inline ovstage_population_property_predicate_t ovstage_population_property_predicate_is_relationship(void) {
  ovstage_population_property_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PROPERTY_PREDICATE_IS_RELATIONSHIP;
  predicate.values.strings = NULL;
  predicate.value_count = 0;
  return predicate;
}

/* Matches properties that are marked custom. */
static inline ovstage_population_property_predicate_t ovstage_population_property_predicate_is_custom(void) {
  ovstage_population_property_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PROPERTY_PREDICATE_IS_CUSTOM;
  predicate.values.strings = NULL;
  predicate.value_count = 0;
  return predicate;
}

/* Matches properties with an authored opinion. */
static inline ovstage_population_property_predicate_t ovstage_population_property_predicate_is_authored(void) {
  ovstage_population_property_predicate_t predicate;
  predicate.kind = OVSTAGE_POPULATION_PROPERTY_PREDICATE_IS_AUTHORED;
  predicate.values.strings = NULL;
  predicate.value_count = 0;
  return predicate;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OVSTAGE_POPULATION_PREDICATE_H */
