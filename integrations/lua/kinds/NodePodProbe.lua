-- Healthy: each probe has a result, good or bad.
local probes, results = 0, 0
for _, pod in ipairs(entries(at(obj, "spec", "podProbes"))) do probes = probes + #entries(at(pod, "probes")) end
for _, pod in ipairs(entries(at(obj, "status", "podProbeStatuses"))) do
  results = results + #entries(at(pod, "probeStates"))
end
local tally = results .. " of " .. probes .. " probes have a result"
return results < probes and progressing(tally) or healthy(tally)
