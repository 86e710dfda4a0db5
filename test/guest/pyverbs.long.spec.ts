/**
 * The tests of rdma-core itself, written for pyverbs, in a guest with Debian's Python: those of extended reliable connections,
 * of extended completion queues and of memory windows. They skip features that libmlx4 lacks (extended posts) or the card lacks
 * (on-demand paging).
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GuestSession } from '../../guests/linux/index.ts';
import { pythonTree } from './pyverbs.ts';
import { bootTimeoutMs, optionsFor, reasonAgainst } from './suite.ts';

/** Name patterns of the tests to run, and their expected results. */
const outcomesOf = {
  xrc: {
    test_xrc_atomic_cmp_and_swap: 'ok',
    test_xrc_atomic_fetch_and_add: 'ok',
    test_xrc_traffic_cq_ex: 'ok',
    test_ro_xrc_traffic: 'ok',
    test_odp_xrc_traffic: 'skipped',
    test_qp_ex_xrc_send: 'skipped',
    test_qp_ex_xrc_send_imm: 'skipped',
  },
  MWTest: {
    test_mw_type1: 'ok',
    test_invalidate_mw_type1: 'ok',
    test_mw_type2: 'ok',
    test_mw_type2_invalidate_local: 'ok',
    test_mw_type2_invalidate_remote: 'ok',
    test_mw_type2_invalidate_dealloc: 'ok',
    test_reg_mw_wrong_type: 'ok',
  },
  cq_ex: {
    test_rc_traffic_cq_ex: 'ok',
    test_ud_traffic_cq_ex: 'ok',
    test_xrc_traffic_cq_ex: 'ok',
    test_create_cq_ex: 'ok',
    test_create_cq_ex_bad_flow: 'ok',
    test_dv_cq_ex_with_sgid: 'skipped',
  },
} as const;
/** Matches the definition of a wanted test, or of its class. */
const isWanted = new RegExp(`(?:def test_|class )\\w*(?:${Object.keys(outcomesOf).join('|')})`);

/**
 * Debian packages compressed copies of some test files. Files without a wanted test are left out: an emulated processor needs
 * half a minute to compile them all.
 */
function unpackedTests(tree: string, folder: string): string {
  const tests = join(folder, 'tests');
  cpSync(join(tree, 'usr/share/doc/rdma-core/tests'), tests, { recursive: true });
  for (const name of readdirSync(tests).filter((one) => one.endsWith('.gz'))) {
    writeFileSync(join(tests, name.slice(0, -'.gz'.length)), gunzipSync(readFileSync(join(tests, name))));
    rmSync(join(tests, name));
  }
  for (const name of readdirSync(tests).filter((one) => one.startsWith('test_')))
    if (!isWanted.test(readFileSync(join(tests, name), 'utf8'))) rmSync(join(tests, name));
  return tests;
}

/** Prints the clock's kHz, and the clock in cycles and the guest's time before and after a second. */
const clockProgram = [
  'import time',
  'from pyverbs.device import Context',
  'from pyverbs.enums import IBV_VALUES_MASK_RAW_CLOCK as RAW',
  'c = Context(name="mlx4_0")',
  'read = lambda: (c.query_rt_values_ex(RAW)[1], time.monotonic_ns())',
  'first = read(); time.sleep(1); last = read()',
  'print(c.query_device_ex().hca_core_clock, first[0], last[0], first[1], last[1])',
].join('\n');

const reason = await reasonAgainst('debian');

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('the tests of rdma-core', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pyverbs-guest-'));
  let session: GuestSession;

  beforeAll(async () => {
    expect(reason).toBeUndefined();
    const { tree, copies } = await pythonTree();
    session = await GuestSession.start({
      ...optionsFor('debian'),
      ...{ hcas: 1, guests: 1, cable: false },
      ownFiles: {
        copies: [unpackedTests(tree, folder), ...copies],
        modules: [],
      },
    });
    await session.load();
  }, bootTimeoutMs);
  afterAll(async () => {
    await session?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  it.each([
    ['extended reliable connections: traffic and atomics', 'xrc'],
    [
      'extended completion queues: with each flag that a completion may have, the timestamp among them',
      'cq_ex',
    ],
    ['memory windows: both types, bound, used and taken back', 'MWTest'],
  ] as const)('pass for %s', { timeout: 600_000 }, async (_what, word) => {
    const command = `cd /root/tests && python3 run_tests.py --dev mlx4_0 --port 1 -v -k ${word} 2>&1`;
    const { output, exitStatus } = await session.run(0, command, { timeoutSeconds: 500 });
    expect(exitStatus, output).toBe(0);
    const outcomes = [...output.matchAll(/^(test_\w+) .*?(?:\n.*?)?\.\.\. (\w+)/gm)].map(([, name, how]) => [
      name,
      how,
    ]);
    expect(Object.fromEntries(outcomes), output).toEqual(outcomesOf[word]);
  });

  it('sheet 2.7: a program reads the core clock, which runs at the rate that the device reports', async () => {
    const { output, exitStatus } = await session.run(0, `python3 -c '${clockProgram}'`, {
      timeoutSeconds: 100,
    });
    expect(exitStatus, output).toBe(0);
    const [khz, ...reads] = output.trim().split(/\s+/).map(Number);
    expect(khz).toBe(427_000);
    const [cyclesBefore, cyclesAfter, nanosecondsBefore, nanosecondsAfter] = reads as [
      number,
      number,
      number,
      number,
    ];
    // Simulated time follows the wall clock while the guest sleeps, within the lag of a busy computer.
    const rate = ((cyclesAfter - cyclesBefore) * 1e6) / (nanosecondsAfter - nanosecondsBefore);
    expect(rate / khz!).toBeGreaterThan(0.8);
    expect(rate / khz!).toBeLessThan(1.2);
  });
});
