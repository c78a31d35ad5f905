package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
)

// gpuPrices returns the price of one accelerator of each type for an hour: as configured, else the
// median over the namespaces of the variants, each of which counts once. The price in an object
// moves no replica of another tenant.
func (r *round) gpuPrices() map[fleet.Accelerator]float64 {
	if r.prices != nil {
		return r.prices
	}
	type seller struct {
		accelerator fleet.Accelerator
		namespace   string
	}
	lowest := make(map[seller]float64)
	for v := range r.owners() {
		if takes := v.takes(); takes > 0 && v.excluded == nil {
			key, price := seller{v.accelerator, v.ID.Namespace}, v.price/float64(takes)
			if before, found := lowest[key]; !found || price < before {
				lowest[key] = price
			}
		}
	}
	all := make(map[fleet.Accelerator][]float64)
	for key, price := range lowest {
		all[key.accelerator] = append(all[key.accelerator], price)
	}
	r.prices = make(map[fleet.Accelerator]float64, len(all))
	for accelerator, prices := range all {
		slices.Sort(prices)
		r.prices[accelerator] = prices[len(prices)/2]
		if row := r.accelerators[accelerator]; row.Price > 0 {
			r.prices[accelerator] = row.Price
		}
	}
	return r.prices
}
