-- Looks at jobs in the order of their ids. ARGV: what to walk ('list', 'key' or 'views') and its name; for views the codes of
-- the statuses or nothing for any, queue, type and the beginning of a type, or nothing for each; 1 for newest first; the two
-- bounds of the ids as ZRANGEBYLEX takes them; how many to look at; how many to answer (0: only count); then place, way and
-- value of each test. Answers the id to go on after, or nothing at the end; how many were looked at; how many matched; id and
-- record of each. Only reads.
local kind, name, statuses, queue, type_, prefix = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local descending, lower, upper = ARGV[7] == '1', ARGV[8], ARGV[9]
local look, limit = tonumber(ARGV[10]), tonumber(ARGV[11])
local TESTS = 12

local function is_within(id)
  local low, high = string.sub(lower, 2), string.sub(upper, 2)
  local after = lower == '-' or id > low or (id == low and string.sub(lower, 1, 1) == '[')
  return after and (upper == '+' or id < high or (id == high and string.sub(upper, 1, 1) == '['))
end

local function is_before(one, other)
  if descending then
    return one > other
  end
  return one < other
end

-- The first ids of a list.
local function first_of(list, n)
  if descending then
    return redis.call('ZREVRANGEBYLEX', list, upper, lower, 'LIMIT', 0, n)
  end
  return redis.call('ZRANGEBYLEX', list, lower, upper, 'LIMIT', 0, n)
end

local function is_wanted(of_status, of_queue, of_type)
  return (statuses == '' or string.find(statuses, of_status, 1, true)) and (queue == '' or queue == of_queue)
    and (type_ == '' or type_ == of_type) and string.sub(of_type, 1, #prefix) == prefix
end

-- The lists of every status, queue and type that match, and those of leases where only what runs is asked for: these go by
-- the end of the lease, and are no longer than what runs.
local function views()
  local lists, leases, seen = {}, {}, {}
  local running_only = string.find(statuses, 'p', 1, true) and not string.find(statuses, 'q', 1, true)
  for _, known in ipairs(redis.call('HKEYS', COUNTS)) do
    local of_status, of_queue, of_type = string.match(known, '^(.*)' .. SEP .. '(.*)' .. SEP .. '(.*)$')
    if is_wanted(of_status, of_queue, of_type) then
      local of = named(of_status, of_queue, of_type)
      if of_status == 'p' and running_only then
        leases[#leases + 1] = of.leases
      elseif not seen[of.view] then
        seen[of.view] = true
        lists[#lists + 1] = of.view
      end
    end
  end
  return lists, leases
end

local lists, leases = {}, {}
if kind == 'list' then
  lists = {P .. name}
elseif kind == 'views' then
  lists, leases = views()
end

-- As far as every list was read: behind the last id of one that has more, others are not known either.
local ids, known_to = {}, nil
local each = math.max(limit, math.floor(look / math.max(#lists, 1)), 1)
for _, list in ipairs(lists) do
  local some = first_of(list, each)
  for _, id in ipairs(some) do
    ids[#ids + 1] = id
  end
  if #some == each and (not known_to or is_before(some[each], known_to)) then
    known_to = some[each]
  end
end
for _, list in ipairs(leases) do
  for _, id in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    if is_within(id) then
      ids[#ids + 1] = id
    end
  end
end
local holder = kind == 'key' and redis.call('HGET', P .. 'keys', name)
if holder and is_within(holder) then
  ids[1] = holder
end
table.sort(ids, is_before)

local WAYS = {
  ['='] = function(value, wanted) return value == wanted end,
  ['in'] = function(value, wanted) return string.find(wanted, value, 1, true) end,
  ['^'] = function(value, wanted) return string.sub(value, 1, #wanted) == wanted end,
  ['>='] = function(value, wanted) return value ~= '' and tonumber(value) >= tonumber(wanted) end,
  ['<='] = function(value, wanted) return value ~= '' and tonumber(value) <= tonumber(wanted) end,
  ['<'] = function(value, wanted) return value ~= '' and tonumber(value) < tonumber(wanted) end,
  ['has'] = function(value, wanted)
    for _, tag in ipairs(value ~= '' and cjson.decode(value) or {}) do
      if tag == wanted then
        return true
      end
    end
    return false
  end,
}
local reads_rest = false
for at = TESTS, #ARGV, 3 do
  reads_rest = reads_rest or tonumber(ARGV[at]) > APART
end

local function matches(job)
  local fields = reads_rest and whole(job) or job
  for at = TESTS, #ARGV, 3 do
    if not WAYS[ARGV[at + 1]](fields[tonumber(ARGV[at])], ARGV[at + 2]) then
      return false
    end
  end
  return true
end

-- So many that are known in order; behind the last of them it goes on.
local n_ids, stop = math.min(#ids, look), ''
for at = 1, n_ids do
  if ids[at] == known_to then
    n_ids = at
    break
  end
end
if n_ids < #ids or known_to then
  stop = ids[n_ids]
end
local some = {}
for at = 1, n_ids do
  some[at] = ids[at]
end
load(some)
local told, looked, n = {}, 0, 0
for _, id in ipairs(some) do
  looked = looked + 1
  local job = jobs[id]
  if job and matches(job) then
    n = n + 1
    if limit > 0 then
      told[#told + 1] = id
      told[#told + 1] = job[TEXT]
      if n == limit then
        stop = id
        break
      end
    end
  end
end
return {stop, looked, n, unpack(told)}
