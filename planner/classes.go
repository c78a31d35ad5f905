package planner

import "github.com/wva-project/wva/fleet"

// rank gives each model the highest priority of its variants' classes, over all roles.
func (x *index) rank(classes []fleet.ServiceClass) {
	priorities := make(map[string]int, len(classes))
	for _, class := range classes {
		if before, twice := priorities[class.Name]; class.Name != "" && (!twice || before < class.Priority) {
			priorities[class.Name] = class.Priority
		}
	}
	highest := make(map[fleet.ModelID]int, len(x.models))
	for _, m := range x.models {
		for _, v := range m.variants {
			priority := priorities[v.ServiceClass]
			if other, found := highest[m.id]; found {
				priority = max(priority, other)
			}
			highest[m.id] = priority
		}
	}
	for _, m := range x.models {
		m.priority = highest[m.id]
	}
}
