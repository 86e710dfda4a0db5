import { describe, expect, it } from 'vitest';
import { type PcProfileCounts, UNTIL_HALT } from '../../pc/index.ts';
import { guestProfileOf } from './guest-profile.ts';
import { GuestSymbols } from './guest-symbols.ts';
import { foldedProfile, profileText } from './profile-text.ts';

const symbols = new GuestSymbols(
  [
    { address: 0xc100_0000, name: 'schedule' },
    { address: 0xc100_0100, name: 'memset' },
    { address: 0xc100_0200, name: '_etext' },
  ],
  'mlx4_core 8192 0 - Live 0xcc8ab000 (E)',
  () => undefined,
);
const lat = '/usr/bin/ib_write_lat';
const at = (mode: 'kernel' | 'user', address: number, program: string | undefined, instructions: number) => ({
  mode,
  address,
  cr3: program === undefined ? 0x2000 : 0x1000,
  program,
  instructions,
  samples: 2,
});

/** 1000 instructions of 400 ps; a load of 600 ns, 3 stores of 4 ns. */
const counts: PcProfileCounts = {
  instructions: [
    at('kernel', 0xc100_0010, lat, 100),
    at('kernel', 0xc100_0020, undefined, 50),
    at('kernel', 0xc100_0100, lat, 30),
    at('kernel', 0xcc8a_b004, lat, 20),
    at('kernel', 0xd000_0000, lat, 10),
    at('user', 0x804_8000, lat, 400),
    at('user', 0xb7f0_0000, lat, 300),
    at('kernel', UNTIL_HALT, undefined, 90),
  ],
  accesses: [
    {
      mode: 'kernel',
      address: 0xcc8a_b000,
      cr3: 0x1000,
      program: lat,
      kind: 'load',
      count: 1,
      durationPs: 600_000,
    },
    {
      mode: 'user',
      address: 0x804_8000,
      cr3: 0x1000,
      program: lat,
      kind: 'store',
      count: 3,
      durationPs: 12_000,
    },
  ],
  instructionCount: 1000,
  halts: 1,
  interrupts: { messages: 7, pins: 0 },
  contexts: undefined,
  account: {
    executingPs: 400_000,
    loadsPs: 600_000,
    storesPs: 12_000,
    ...{ interruptsPs: 200_000, wakingPs: 800_000, chancePs: 0, idlePs: 0 },
  },
};
const profile = guestProfileOf('host0', counts, symbols, true);

describe('the profile of a guest', () => {
  it('joins the addresses of a function, and those of a program', () => {
    const rows = profile.functions.map((each) => [
      ...[each.mode, each.module, each.name, each.program, each.instructions, each.samples],
      ...[each.loads, each.stores, each.executingPs + each.accessesPs],
    ]);
    expect(rows).toEqual([
      ['kernel', 'mlx4_core', undefined, undefined, 20, 2, 1, 0, 608_000],
      ['user', undefined, undefined, lat, 700, 4, 0, 3, 292_000],
      ['kernel', 'kernel', 'schedule', undefined, 150, 4, 0, 0, 60_000],
      ['halting', undefined, undefined, undefined, 90, 2, 0, 0, 36_000],
      ['kernel', 'kernel', 'memset', undefined, 30, 2, 0, 0, 12_000],
      ['kernel', undefined, undefined, undefined, 10, 2, 0, 0, 4000],
    ]);
  });

  it('adds up to the instructions and the time of the clock', () => {
    expect(profile.instructionsByMode).toEqual({ kernel: 210, user: 700, halting: 90 });
    const timePs = profile.functions.reduce((sum, each) => sum + each.executingPs + each.accessesPs, 0);
    expect(timePs).toBe(400_000 + 600_000 + 12_000);
    const ofPrograms = profile.programs.map((each) => [each.userInstructions, each.kernelInstructions]);
    expect(ofPrograms).toEqual([
      [700, 160],
      [0, 140],
    ]);
  });

  it('is a text of at most 80 characters a line', () => {
    const text = profileText({ ...profile, name: 'host0' });
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(text).toContain('kernel 21.0 %, user 70.0 %, before halts 9.0 %');
    expect(text).toMatch(/60\.1 % +20 +600\.0 ns {2}mlx4_core: \(no symbol\)/);
    expect(text).toMatch(/28\.9 % +700 +12\.00 ns {2}program ib_write_lat/);
    expect(text).toMatch(/86\.0 % +700 +160 {2}00001000 {2}ib_write_lat/);
  });

  it('shortens long names, and adds up the functions that it does not show', () => {
    const many = Array.from({ length: 25 }, (_, index) => ({
      ...profile.functions[1]!,
      program: `/${'long'.repeat(30)}${index}`,
    }));
    const text = profileText({ ...profile, functions: many, programs: [] });
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(text).toMatch(/3,500 +60\.00 ns {2}5 others/);
  });

  it('is in the folded format a line for each function with instructions', () => {
    expect(foldedProfile(profile)).toBe(
      [
        ...['kernel;mlx4_core 20', 'user;ib_write_lat 700', 'kernel;kernel;schedule 150', 'halting 90'],
        ...['kernel;kernel;memset 30', 'kernel;outside 10', ''],
      ].join('\n'),
    );
  });

  it('says that the modules are not known', () => {
    expect(profileText(guestProfileOf('host0', counts, symbols, false))).toContain('modules are not known');
    expect(profileText(profile)).not.toContain('not known:');
  });
});
