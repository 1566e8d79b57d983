-- ARGV: how many groups, the groups, whether all drafts are plain, then the drafts. Answers one verdict each, or
-- nothing when every draft is a job now.
local groups, at = {}, 2
for n = 1, tonumber(ARGV[1]) do
  groups[n] = group_at(at)
  at = at + GROUP
end
local plain, drafts = ARGV[at] == '1', {}
at = at + 1
for place = at, #ARGV, DRAFT do
  drafts[#drafts + 1] = draft_at(place, groups)
end
local depths = rooms(groups)

local function all_new()
  for first = 1, #drafts, MOST do
    local keys = {}
    for place = first, math.min(first + MOST - 1, #drafts) do
      keys[#keys + 1] = P .. 'j:' .. drafts[place].id
    end
    if redis.call('EXISTS', unpack(keys)) > 0 then
      return false
    end
  end
  return true
end

-- The common case: nothing to meet, so records are written as they came, without being taken apart.
local function insert_alike()
  local written, seen = {}, {}
  for _, draft in ipairs(drafts) do
    local id, group = draft.id, draft.group
    if not seen[id] then
      seen[id] = true
      written[#written + 1] = P .. 'j:' .. id
      written[#written + 1] = record_of(draft)
      if draft.apart ~= '' then
        written[#written + 1] = P .. 'x:' .. id
        written[#written + 1] = draft.apart
      end
      local named = group.status .. SEP .. group.queue .. SEP .. group.type
      add(P .. 'v:' .. named, 0, id)
      tally(P .. 'counts', named, 1)
      if group.status == 'q' then
        local line = group.queue .. SEP .. group.type .. SEP .. group.priority
        lines[line] = group.priority
        add(P .. 'w:' .. line, group.run_at, id)
      else
        add(P .. 'due', group.run_at, id)
      end
    end
  end
  for first = 1, #written, MOST do
    redis.call('MSET', unpack(written, first, math.min(first + MOST - 1, #written)))
  end
  flush()
end

local verdicts = {}
if plain and next(depths) == nil and all_new() then
  insert_alike()
else
  for n, draft in ipairs(drafts) do
    verdicts[n] = insert_one(draft, depths)
  end
end
know_queues(groups)
wake()
return verdicts
