"""Style: where everything stands. Colours are those of the terminal, whatever its background."""

from __future__ import annotations

CSS = """
Screen { background: ansi_default; color: ansi_default; }
#tabs { margin-top: 1; height: 1; }
#banner { height: auto; display: none; color: $error; text-style: bold; }
#banner.-up { display: block; }
#body { height: 1fr; }
#upper { height: auto; layout: vertical; }
Screen.-wide #upper { layout: horizontal; }
.panel { height: auto; margin-top: 1; width: 1fr; }
Screen.-wide #workers { margin: 1 0 0 3; }
Screen.-low #tabs, Screen.-low .panel { margin-top: 0; }
Screen.-wide.-low #workers { margin: 0 0 0 3; }
.head { height: 1; }
OptionList, OptionList:focus {
    height: 1fr; border: none; padding: 0; background: ansi_default; background-tint: ansi_default 0%;
    scrollbar-size-vertical: 1;
}
OptionList > .option-list--option, OptionList > .option-list--option-hover,
OptionList > .option-list--option-highlighted {
    background: ansi_default; color: ansi_default; text-style: none;
}
OptionList:focus > .option-list--option-highlighted {
    background: ansi_blue; color: ansi_bright_white; text-style: bold;
}
App:nocolor OptionList:focus > .option-list--option-highlighted { text-style: bold underline; }
#filter { height: 1; border: none; padding: 0; background: ansi_default; display: none; }
#filter:focus { border: none; background: ansi_default; background-tint: ansi_default 0%; }
#filter.-up { display: block; }
.keys, #keys { height: 1; }
.tell { height: auto; display: none; }
.tell.-up { display: block; }
ModalScreen { background: ansi_default; }
Asking, Keys { align: center middle; }
.dialog {
    width: 72; max-width: 100%; height: auto; max-height: 90%; border: round ansi_default; padding: 0 2;
    background: ansi_default;
}
.answers { height: 1; margin-top: 1; align-horizontal: right; }
Button, Button:hover { background: ansi_default; color: ansi_default; border: none; margin-left: 2; }
Button:focus { background: ansi_blue; color: ansi_bright_white; text-style: bold; }
App:nocolor Button:focus { text-style: bold underline; }
#job-head { height: auto; text-style: bold; margin-bottom: 1; }
#job-body { height: 1fr; background: ansi_default; scrollbar-size-vertical: 1; }
#job-text { height: auto; width: 1fr; }
"""
