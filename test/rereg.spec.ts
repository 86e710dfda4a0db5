/**
 * Re-registration: the peer's rights, the target of its data, and the state after a failure (interface sheet 3.15; Linux 6.1,
 * mlx4_ib_rereg_user_mr).
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { mpt } from '../abi/index.ts';
import { expectBalanced } from './expectations.ts';
import { eachPartition, programOf, runPrograms, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

describe.each(eachPartition)('a region that is re-registered, in partition %s', (partition) => {
  it('IBTA 11.2.8.8: has other rights, memory and protection domain under the same keys', async () => {
    const { results, report } = await runPrograms(
      [programOf('rereg', 'writer', 0), programOf('rereg', 'changer', 1)],
      { partition },
    );
    expectBalanced(report);
    const denied = 'REM_ACCESS_ERR';
    // none, without remote write, with it again, moved, in another PD than the QP's, back, all three at once
    expect(results[0]).toEqual(['SUCCESS', denied, 'SUCCESS', 'SUCCESS', denied, 'SUCCESS', 'SUCCESS']);
    expect(results[1]).toEqual({
      isThere: [true, false, true, true, false, true, true],
      isSameKey: true,
      busy: ['ok', true],
      released: 4096,
      regions: 1,
    });
  });
});

it('sheet 3.15: edits no entry owned by the device, by the linter of drivers', async () => {
  await using machine = await smallMachine({ analysis: { lint: true } });
  await machine.load(programOf('rereg', 'writer', 0));
  await machine.load(programOf('rereg', 'changer', 1));
  await machine.run();
  expect((await machine.analyses()).flatMap(({ findings }) => findings)).toEqual([]);
});

it('libibverbs, mlx4_ib: rejects invalid changes, and a failure leaves a region that can only be deregistered', async () => {
  const { results } = await runPrograms([programOf('rereg', 'failures', 0)]);
  expect(results[0]).toEqual({
    noFlag: 'EINVAL',
    unknownFlag: 'EINVAL',
    accessWithoutFlag: 'EINVAL',
    remoteWriteAlone: 'EINVAL',
    noLength: 'EINVAL',
    noPd: 'EINVAL',
    stillGood: 'ok',
    unmapped: 'EFAULT',
    afterwards: 'EINVAL',
    dereg: 'ok',
    next: 'ok',
    pinnedLater: 4096,
  });
});

it.each([
  ['once', 1024 - 256],
  ['twice', 8192],
])(
  'Linux 6.1, mlx4_ib: gives no right to write to memory that was read-only, where it can be pinned %s',
  async (_often, limitKib) => {
    const set = { 'host.memory.memlockLimitKib': limitKib };
    const { results } = await runPrograms([programOf('rereg', 'readOnly', 0)], { set });
    expect(results[0]).toEqual({ wider: 'EPERM', dereg: 'ok' });
  },
);

describe('golden capture j-rereg-mr', () => {
  interface Line {
    readonly kind: string;
    readonly op?: string;
    readonly source?: string;
    readonly input?: string;
    readonly bytes?: string;
    readonly index?: number;
    readonly in_mod?: string;
  }
  const file = new URL('../reference/golden/j-rereg-mr.jsonl', import.meta.url);
  const lines = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
  const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.padEnd(128, '0'), 'hex'));

  it('edits the entry in its page between HW2SW_MPT and SYNC_TPT, and changes only the requested fields', () => {
    const registered = new Map<number, Uint8Array>();
    const changed: string[][] = [];
    lines.forEach((line, at) => {
      if (line.op === 'SW2HW_MPT') registered.set(Number(line.in_mod), bytesOf(line.input!));
      if (line.op !== 'HW2SW_MPT' || lines[at + 1]?.source !== 'icm') return;
      const edit = lines[at + 1]!;
      const [before, after] = [registered.get(edit.index!)!, bytesOf(edit.bytes!)].map((bytes) =>
        mpt.decode(bytes),
      );
      const names = Object.keys(mpt.fields) as (keyof typeof mpt.fields)[];
      changed.push(names.filter((name) => before![name] !== after![name]).sort());
      expect(lines.slice(at + 1, at + 4).some(({ op }) => op === 'SYNC_TPT')).toBe(true);
    });
    // Rights twice, rights withdrawn, other memory, another PD.
    expect(changed).toEqual([
      ['remoteWriteEnabled', 'status'],
      ['remoteWriteEnabled', 'status'],
      ['remoteWriteEnabled', 'status'],
      ['logPageSize', 'startAddress', 'status'],
      ['pd', 'status'],
    ]);
  });
});
