/** Mistakes of C programs of libibverbs in a stock guest are named from the device's evidence alone. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Cause, diagnosedGuests } from '../../explain/why/index.ts';
import { GuestSession } from '../../guests/linux/index.ts';
import { compilerWith } from './c-programs.ts';
import { bootTimeoutMs, optionsFor, reasonAgainst } from './suite.ts';

const reason = await reasonAgainst('debian');

/** Expected causes by the mistakes of verbs-mistakes.c, and the sentence with the numbers that the program used. */
const expected: Readonly<Record<string, readonly [cause: string, says: RegExp]>> = {
  'wrong-rkey': ['remote-key-unknown', /uses rkey 0x\w+, which no region of host 0 ever had/],
  'few-receives': ['no-receive', /all 1 posted ones were used: 3 RNR NAKs .* rnr_retry 2 is used up/],
  unsignalled: ['send-queue-unsignalled', /All (\d+) requests of QP \w+ of host 0 were unsignalled/],
  'never-polled': [
    'cq-overrun',
    /has 4 entries, the completion after 4 found no room, and its software had taken 0/,
  ],
};

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')(
  'why, of C programs in a stock guest',
  () => {
    let causes: readonly Cause[];
    let printed = '';

    beforeAll(async () => {
      expect(reason).toBeUndefined();
      await using session = await GuestSession.start({
        ...optionsFor('debian'),
        ...{ hcas: 1, guests: 1, cable: false },
        serve: { analysis: { evidence: {} } },
        ownFiles: { copies: await compilerWith('verbs-mistakes.c'), modules: [] },
      });
      await session.load();
      const runs = ['none', ...Object.keys(expected)].map((name) => `./verbs-mistakes ${name}`).join(' && ');
      const command = `cd /root && tcc -o verbs-mistakes verbs-mistakes.c -libverbs && ${runs}`;
      const { output, exitStatus } = await session.run(0, command, { timeoutSeconds: 120 });
      expect(exitStatus, output).toBe(0);
      printed = output;
      await session.finish();
      causes = diagnosedGuests(await session.machine.evidence());
    }, bootTimeoutMs + 120_000);

    it.each(Object.entries(expected))('names %s once, with its numbers', (_name, [cause, says]) => {
      const found = causes.filter((one) => one.cause === cause);
      expect(found, JSON.stringify(causes, undefined, 1)).toHaveLength(1);
      expect(found[0]!.sentence).toMatch(says);
    });

    it('accuses nothing else, and never the program without a mistake', () => {
      const names = Object.values(expected).map(([cause]) => cause);
      expect(causes.map(({ cause }) => cause).toSorted()).toEqual(names.toSorted());
    });

    it('counts as many unsignalled requests as the program posted before ENOMEM', () => {
      const posted = Number(/request (\d+): Cannot allocate memory/.exec(printed)?.[1]) - 1;
      const note = causes.find(({ cause }) => cause === 'send-queue-unsignalled');
      expect(note?.evidence).toMatchObject({ silent: posted, signalled: 0, capacity: posted });
    });
  },
);
