/** The account of a guest's processor under a latency test, with samples as fine as they are and finer. */
import { describe, expect, it } from 'vitest';
import { foldedProfile, LinuxMachine, profileText } from '../../guests/linux/inside/index.ts';
import { checkedProfile } from './inside-profile.ts';
import { cache, reasonAgainstInside } from './inside-suite.ts';

const reason = await reasonAgainstInside('debian');
const iterations = 20;
/** Post of a write of 64 bytes inline: control 16, remote address 16, inline header and data 80, in blocks of 64 bytes. */
const wordsOfPost = 128 / 4;
const side = `ib_write_lat -s 64 -n ${iterations}`;

async function profileOf(quantumInstructions?: number) {
  const cpuProfile = quantumInstructions === undefined ? {} : { quantumInstructions };
  const machine = await LinuxMachine.start({ kernel: 'debian', cache, cpuProfile });
  await machine.load();
  return await checkedProfile(machine, {
    command: `${side} >/dev/null & sleep 0.1; ${side} localhost && wait $!`,
    program: '/usr/bin/ib_write_lat',
    // Both sides post each of their writes once, by BlueFlame.
    stores: 2 * iterations * wordsOfPost,
  });
}

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('the profile of a latency test', () => {
  it('is the same twice, and in lines of 80 characters', async () => {
    expect(reason).toBeUndefined();
    const profile = await profileOf();
    expect(await profileOf()).toEqual(profile);
    const lines = profileText(profile).split('\n');
    expect(foldedProfile(profile)).toMatch(/^user;ib_write_lat \d+$/m);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
  });

  it('has more samples, and the same accesses, with short quanta', async () => {
    const { functions, instructionCount } = await profileOf(1000);
    const samples = functions.reduce((sum, each) => sum + each.samples, 0);
    expect(instructionCount / samples).toBeLessThan(2000);
  });
});
