/**
 * Faults of missing inputs: the answer to a command, and an interrupt. Linux waits a minute for each before it acts, so two
 * adapters of one guest are affected at the same time.
 */
import { pingPong } from './driver.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure } from './stage.ts';

/** Linux waits 60 s for a command (MLX4_CMD_TIME_CLASS_A), and then resets. */
const waitSeconds = 300;

const bind = (address: string): string => `echo ${address} >/sys/bus/pci/drivers/mlx4_core/bind`;

const steps: readonly Step[] = [
  {
    title:
      'drivers are there, with an adapter whose first interrupt gets lost still to be probed in the background',
    async run(stage) {
      await stage.check('echo 0 >/sys/bus/pci/drivers_autoprobe; modprobe mlx4_core');
      await stage.check(bind(stage.session.adapterAddress(0)));
      await stage.session.load();
      await stage.check(`(${bind(stage.session.adapterAddress(1))}) >/run/bind.log 2>&1 & sleep 0.1`);
      return undefined;
    },
  },
  {
    title:
      'a command that is never answered: after a minute the driver resets the device, and the program gets its event',
    async run(stage) {
      const mark = await stage.markMessages();
      const said = await stage.checkFails('ibv_srq_pingpong -d mlx4_0', { timeoutSeconds: waitSeconds });
      await stage.check('until dmesg | grep -q "mlx4_restart_one was ended, ret=0"; do sleep 0.5; done');
      const text = await stage.messagesSince(mark);
      for (const pattern of [/0x35 timed out/, /device was reset successfully/]) {
        if (!pattern.test(text)) throw new ScenarioFailure(`the kernel did not say ${pattern}:\n${text}`);
      }
      return said.trim();
    },
  },
  {
    title: 'an interrupt that is never seen at the probe: after a minute the driver does without MSI-X',
    async run(stage) {
      await stage.check('until ls /sys/class/infiniband/mlx4_1; do sleep 0.5; done', {
        timeoutSeconds: waitSeconds,
      });
      await stage.session.load();
      await stage.check("dmesg | grep 'NOP command failed to generate MSI-X interrupt'");
      const line = await stage.check("grep 'fasteoi.*mlx4_core' /proc/interrupts");
      return line.trim().replace(/\s+/g, ' ');
    },
  },
  {
    title: 'afterwards both adapters work, one by MSI-X and the other by its interrupt pin',
    async run(stage) {
      await pingPong(stage, '-e -d mlx4_0');
      await pingPong(stage, '-e -d mlx4_1');
      return undefined;
    },
  },
];

export const faultsOfSilence: Scenario = {
  name: 'faults-silence',
  title: 'answers and interrupts that never come',
  hcas: 2,
  isCabled: false,
  guests: 1,
  faults: [
    { command: 'SW2HW_SRQ', nth: 1, status: 'none' },
    { interrupt: 'lost', nth: 1, node: 1 },
  ],
  isLoaded: false,
  steps,
};
