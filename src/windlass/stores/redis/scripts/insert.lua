-- ARGV: how many groups, the groups, then the drafts. Answers one verdict each. For drafts that may meet other jobs by a
-- key, a full queue or their own id; enqueue.lua is for all others.
local groups, at = {}, 2
for n = 1, tonumber(ARGV[1]) do
  groups[n] = group_at(at)
  at = at + GROUP
end
local drafts = {}
for place = at, #ARGV, DRAFT do
  drafts[#drafts + 1] = draft_at(place, groups)
end
local depths, verdicts = rooms(groups), {}
for n, draft in ipairs(drafts) do
  verdicts[n] = insert_one(draft, depths)
end
know_queues(groups)
wake()
return verdicts
