// Package packing decides whether numbers of replicas can be placed on the nodes of one accelerator
// type, beside and in place of replicas that are there already.
//
// For sizes that divide each other, and no replicas to remove, it is exact by counting blocks. Else
// it tries schemes and removal orders that are fixed beforehand, and small cases exhaustively.
// Whatever fits does so with fewer replicas of any option as well.
package packing
