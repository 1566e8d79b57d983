-- What a job remembers from one attempt to the next, each under a name, lies apart from its record.

local function has_kept(id, job, name)
  return keeps_some(job) and redis.call('HEXISTS', P .. 'k:' .. id, name) == 1
end

local function keep_value(id, job, name, text)
  redis.call('HSET', P .. 'k:' .. id, name, text)
  if not keeps_some(job) then
    job[CONTROL] = with_part(job[CONTROL], KEEPS, '1')
  end
  job[UPDATED_AT] = NOW
  touch(id, job)
end

-- Whether there is room for one more beside the others, as core.kept.fits says.
local function has_room(id, job, name, text)
  local size, words = #name + #text, keeps_some(job) and redis.call('HGETALL', P .. 'k:' .. id) or {}
  for _, word in ipairs(words) do
    size = size + #word
  end
  return #text <= KEPT_LARGEST and #words / 2 < KEPT_NAMES and size <= KEPT_BYTES
end
