// Package packing decides whether numbers of replicas can be placed on the nodes of one accelerator
// type, beside and in place of replicas that are there already.
//
// For sizes that divide each other, and no replicas to remove, it is exact by counting blocks.
// Otherwise it tries schemes and one order of removal, which are fixed beforehand. Counts that fit
// do so with fewer replicas of any option as well.
package packing
