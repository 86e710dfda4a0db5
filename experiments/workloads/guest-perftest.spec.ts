/** The peers of stock rping and perftest facing each other, on two simulated hosts over iWARP: each takes the steps of the stock program. */
import { describe, expect, it, vi } from 'vitest';
import { type JsonValue, Machine, type ProgramContext } from '../../machine/index.ts';
import { perftest, rping } from './guest-counterpart.ts';
import { type Perftest, perftestSteps } from './perftest-steps.ts';

vi.setConfig({ testTimeout: 120_000 });

const set = {
  'host.memory.sizeMib': 64,
  'hca.capability.linkLayer': 'ethernet',
  'hca.capability.transport': 'iwarp',
};
/** Address of host 1, the server. */
const address = '10.0.0.2';
const tests = Object.keys(perftestSteps) as Perftest[];

type Sided = { readonly guest: 'client' | 'server'; readonly address: string };

async function together<Args extends Sided>(
  run: (program: ProgramContext<Args>) => Promise<JsonValue>,
  argsOf: (sided: Sided) => Args,
): Promise<readonly unknown[]> {
  await using machine = await Machine.create({ set });
  await machine.load({ node: 0, run, args: argsOf({ guest: 'server', address }) });
  await machine.load({ node: 1, run, args: argsOf({ guest: 'client', address }) });
  await machine.run();
  const { checks } = await machine.report();
  expect(checks.balanced).toBe(true);
  return machine.results();
}

describe('the peer of rping', () => {
  // The least and the greatest of its option -S; 64 by default.
  it.each([undefined, 23, 65_535])(
    'has its server READ and WRITE the client’s pings of %s bytes',
    async (sizeBytes) => {
      const size = sizeBytes === undefined ? {} : { sizeBytes };
      expect(await together(rping, (sided) => ({ ...sided, count: 3, ...size }))).toEqual([
        { pings: 3 },
        { pings: 3 },
      ]);
    },
  );
});

describe('the peer of perftest', () => {
  it.each(tests)('moves all messages of %s, of 1 byte and of many segments', async (test) => {
    for (const sizeBytes of [1, 20_000]) {
      const moved = { bytes: 5 * sizeBytes };
      expect(await together(perftest, (sided) => ({ ...sided, test, sizeBytes, iterations: 5 }))).toEqual([
        moved,
        moved,
      ]);
    }
  });
});
