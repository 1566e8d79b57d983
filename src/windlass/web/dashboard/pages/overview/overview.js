import { charts } from "../frame/charts.js";
import { replays } from "../failures/replaying.js";

charts();
replays();
