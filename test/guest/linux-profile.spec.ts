/**
 * The account of a guest's processor: stock Linux and its driver on the PC of this process, a polling program over a loopback
 * plug. Expected figures are those of the adapter's interface and of the program.
 */
import { describe, expect, it } from 'vitest';
import { LinuxMachine } from '../../guests/linux/inside/index.ts';
import { checkedProfile } from './inside-profile.ts';
import { cache, reasonAgainstInside } from './inside-suite.ts';

const reason = await reasonAgainstInside('debian');
const iterations = 5;
const side = `ibv_rc_pingpong -g 0 -n ${iterations}`;

const start = (): Promise<LinuxMachine> => LinuxMachine.start({ kernel: 'debian', cache, cpuProfile: {} });

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('the profile of a Linux', () => {
  it('charges instructions and accesses to the polling program, the driver and its interrupts', async () => {
    expect(reason).toBeUndefined();
    const machine = await start();
    await machine.check(0, 'modprobe -a mlx4_ib ib_uverbs', 'loading the drivers', 60);
    await machine.check(0, 'until ibv_devinfo | grep -q PORT_ACTIVE; do sleep 0.02; done', 'waiting');
    const { programs } = await checkedProfile(machine, {
      command: `${side} >/dev/null & sleep 0.1; ${side} localhost && wait $!`,
      program: '/usr/bin/ibv_rc_pingpong',
      // Each side posts a message in each iteration, whose payload is not inline: a doorbell of one word.
      stores: 2 * iterations,
    });
    const both = programs.filter(({ program }) => program === '/usr/bin/ibv_rc_pingpong');
    expect(both).toHaveLength(2);
  });

  it('is equal in two runs', async () => {
    const [first, second] = [await start(), await start()];
    expect(first.host(0).pc.profile!.instructionCount).toBeGreaterThan(1_000_000);
    expect(second.host(0).pc.profile).toEqual(first.host(0).pc.profile);
  });
});
