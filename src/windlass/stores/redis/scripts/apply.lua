-- ARGV: transitions, as settling.lua reads them. Answers a, c, s or m for each: applied, cancelled instead, stale, missing.
-- refuse.lua writes what is told of a stale one.
local verdicts = {}

local function apply(alike, id, job, result)
  if not job then
    verdicts[#verdicts + 1] = 'm'
  elseif job[TOKEN] == alike.token then
    local to = job[STATUS] == 'p' and settle(alike, id, job, result, false)
    -- Only the holder of a token can end its attempt, so the same token on a job that has moved on means that this very
    -- ending was written before, by a call whose answer was lost.
    verdicts[#verdicts + 1] = to == 'c' and alike.to ~= 'c' and 'c' or 'a'
  else
    verdicts[#verdicts + 1] = 's'
  end
end

local transitions = read_transitions()
for _, alike in ipairs(transitions) do
  for at, id in ipairs(alike.ids) do
    apply(alike, id, jobs[id], alike.results[at])
  end
end
finish_settling(transitions)
return table.concat(verdicts)
