"""utils.training, except that in the first attempt one process is killed at step 15; torchrun starts it again."""

import os
import signal
import sys
from itertools import count

from torch.optim.optimizer import register_optimizer_step_pre_hook

from utils.training.__main__ import main

if __name__ == "__main__" and (os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]) == ("1", "0"):
    steps = count(1)

    def killed(*_):
        if next(steps) == 15:
            os.kill(os.getpid(), signal.SIGKILL)

    register_optimizer_step_pre_hook(killed)
if __name__ == "__main__":
    sys.exit(main())
