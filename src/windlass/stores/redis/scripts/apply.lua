-- ARGV: transitions, as settling.lua reads them. Answers a, c, s or m for each: applied, cancelled instead, stale, missing.
-- refuse.lua writes what is told of a stale one.
local verdicts = {}

-- A job does not wait for a signal that is there: how it goes on, as core.transition.go_on says.
local function going_on(alike, id, job)
  if not keeps_some(job) or redis.call('HEXISTS', P .. 'k:' .. id, alike.blocked_by) == 0 then
    return alike
  end
  alike.instead = alike.instead or {
    token = alike.token, to = 'q', what = alike.what, delay = '', give_back = alike.give_back, crashed = alike.crashed,
    error = alike.error, rest = alike.goes_on, blocked_by = '', turned = {},
  }
  return alike.instead
end

local function apply(alike, id, job, result)
  if not job then
    verdicts[#verdicts + 1] = 'm'
  elseif job[TOKEN] == alike.token then
    local to = job[STATUS] == 'p'
      and settle(alike.goes_on == '' and alike or going_on(alike, id, job), id, job, result, false)
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
for at = 1, #transitions do
  transitions[#transitions + 1] = transitions[at].instead
end
finish_settling(transitions)
return table.concat(verdicts)
