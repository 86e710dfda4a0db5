/** Each judge finds its kind of defect in a falsified successful story. */
import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  IBV_WC_LOC_PROT_ERR,
  IBV_WC_RECV,
  IBV_WC_REM_OP_ERR,
  IBV_WC_RNR_RETRY_EXC_ERR,
  IBV_WC_SUCCESS,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_SEND,
} from '../../userlib/index.ts';
import type { CompletionSeen, Observations } from '../observations.ts';
import { type Played, playStory } from '../run-story.ts';
import { type Flaw, type Story, sendsOf } from '../story.ts';
import { exampleStory } from '../testing/example-story.ts';
import { consumesReceive, isAtomicVerb } from '../verbs.ts';
import { judges } from './index.ts';

/** A calm story with every verb of RC in it. */
const seed = 121;
let played: Played;

beforeAll(async () => {
  const story = { ...exampleStory(seed), again: undefined };
  played = await playStory(story, { partition: 'single', shuffleSeed: undefined });
});

/** Findings of the judge of a name in the altered story. */
const verdict = (name: string, told: Partial<Played> = {}): string[] =>
  judges.find((judge) => judge.name === name)!.judge({ ...played, ...told });

/** Returns the story with one program's observations changed. */
const seenAs = (program: number, change: (seen: Observations) => Partial<Observations>): Partial<Played> => ({
  seen: played.seen.map((seen, index) =>
    index === program && seen !== null ? { ...seen, ...change(seen) } : seen,
  ),
});

/** Returns the first program, and its first completion, for which a condition holds. */
function firstWhere(
  holds: (completion: CompletionSeen, opcode: number) => boolean,
): [number, CompletionSeen] {
  const opcodes = new Map([...sendsOf(played.story)].map(({ plan }) => [plan.id, plan.opcode]));
  for (const [program, seen] of played.seen.entries())
    for (const completion of seen?.completions ?? [])
      if (holds(completion, opcodes.get(completion.id) ?? -1)) return [program, completion];
  throw new Error(`no such completion in story ${seed}`);
}

const withCompletion = (program: number, one: CompletionSeen, other: CompletionSeen[]): Partial<Played> =>
  seenAs(program, ({ completions }) => ({
    completions: completions.flatMap((completion) => (completion === one ? other : [completion])),
  }));

/** The story in which one request has a flaw. */
const withFlaw = (id: number, flaw: Flaw): Story => ({
  ...played.story,
  programs: played.story.programs.map((plan) => ({
    ...plan,
    steps: plan.steps.map((step) =>
      step.do === 'post'
        ? { ...step, wrs: step.wrs.map((wr) => (wr.id === id ? { ...wr, flaw } : wr)) }
        : step,
    ),
  })),
});

/** Returns the bytes with the first one changed. */
function altered(bytes: string): string {
  const buffer = Buffer.from(bytes, 'base64');
  buffer[0] = buffer[0]! ^ 0x80;
  return buffer.toString('base64');
}

describe('the judges', () => {
  it('share no code with the device, its drivers and its wires', () => {
    const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' });
    const sources = files.filter((file) => file.endsWith('.ts') && !file.endsWith('.spec.ts'));
    expect(sources.length).toBeGreaterThan(30);
    const shared = sources.flatMap((file) =>
      [
        ...readFileSync(`${import.meta.dirname}/${file}`, 'utf8').matchAll(/from '(?:\.\.\/)+(\w+)\//g),
      ].flatMap(([, room = '']) =>
        /^(hw|host|driver|net|wire|protocol|abi)$/.test(room) ? [`${file}: ${room}`] : [],
      ),
    );
    expect(shared).toEqual([]);
  });

  it('find nothing in a story that went well', () => {
    for (const { name } of judges) expect(verdict(name)).toEqual([]);
  });

  it('find a signalled request that never completed', () => {
    const [program, completion] = firstWhere((_, opcode) => opcode >= 0);
    expect(verdict('completions', withCompletion(program, completion, []))).not.toEqual([]);
  });

  it('find the last request of a queue without a time-out that never completed, where nothing was lost', () => {
    const { story } = played;
    const timeoutOf = (program: number, qp: number): number => story.programs[program]!.qps[qp]!.timeout;
    for (const [program, seen] of played.seen.entries()) {
      const signalled = new Set(seen!.posts.filter(({ isSignalled }) => isSignalled).map(({ id }) => id));
      const last = seen!.completions.findLast(
        ({ id, qp }) => signalled.has(id) && qp >= 0 && timeoutOf(program, qp) === 0,
      );
      if (last === undefined) continue;
      expect(verdict('completions', withCompletion(program, last, [])).join()).toMatch(/never completed/);
      return;
    }
    expect.unreachable('the story has a queue without a time-out');
  });

  it('find a request that completed twice', () => {
    const [program, completion] = firstWhere((_, opcode) => opcode >= 0);
    const told = withCompletion(program, completion, [completion, completion]);
    expect(verdict('completions', told).join()).toMatch(/completed 2 times/);
  });

  it('find a completion of a request that was not posted', () => {
    const [program, completion] = firstWhere(() => true);
    const told = withCompletion(program, completion, [completion, { ...completion, id: 1_000_000 }]);
    expect(verdict('completions', told).join()).toMatch(/never posted/);
  });

  it('find requests of one queue that completed in another order', () => {
    const [program, first] = firstWhere((completion, opcode) => opcode >= 0 && completion.qp >= 0);
    const { completions } = played.seen[program]!;
    const sent = new Set([...sendsOf(played.story)].map(({ plan }) => plan.id));
    const second = completions.find(({ id, qp }) => id !== first.id && qp === first.qp && sent.has(id))!;
    const told = seenAs(program, () => ({
      completions: completions.map((one) => (one === first ? second : one === second ? first : one)),
    }));
    expect(verdict('completions', told).join()).toMatch(/completed after a later one/);
  });

  it('find an error that nothing explains', () => {
    const [program, completion] = firstWhere((_, opcode) => opcode >= 0);
    const told = withCompletion(program, completion, [{ ...completion, status: IBV_WC_REM_OP_ERR }]);
    expect(verdict('completions', told).join()).toMatch(/REM_OP_ERR/);
  });

  it('find a length that is not that of the message', () => {
    const [program, completion] = firstWhere(({ opcode }) => opcode >= 128);
    const told = withCompletion(program, completion, [{ ...completion, byteLen: completion.byteLen + 1 }]);
    expect(verdict('completions', told).join()).toMatch(/byteLen/);
  });

  it('find a wrong byte in what a READ brought, and in what a receive did', () => {
    for (const holds of [
      (completion: CompletionSeen, opcode: number) => opcode === IBV_WR_RDMA_READ && completion.byteLen > 0,
      ({ opcode, byteLen }: CompletionSeen) => opcode === 128 && byteLen > 0,
    ]) {
      const [program, completion] = firstWhere(holds);
      const told = withCompletion(program, completion, [
        { ...completion, bytes: altered(completion.bytes!) },
      ]);
      expect(verdict('bytes', told)).not.toEqual([]);
    }
  });

  it('find a byte at the end that was not written', () => {
    for (const program of [0, 1]) {
      const told = seenAs(program, ({ finals }) => ({
        finals: finals.map((bytes, area) => (area === 0 ? altered(bytes) : bytes)),
      }));
      expect(verdict('bytes', told).join()).toMatch(/at the end/);
    }
  });

  it('find an atomic that returned what the word never held', () => {
    const [program, completion] = firstWhere(
      (one, opcode) => isAtomicVerb(opcode) && one.status === IBV_WC_SUCCESS,
    );
    const told = withCompletion(program, completion, [{ ...completion, bytes: altered(completion.bytes!) }]);
    expect(verdict('atomics', told)).not.toEqual([]);
  });

  it.each<[Flaw, boolean]>([
    // 11.6.2: a local protection error is the requester's; the responder may have executed the request.
    ['localKey', true],
    ['localBounds', true],
    ['localRight', true],
    ['oldLocalKey', true],
    // 9.9.3: refused by the responder before it touches memory.
    ['remoteKey', false],
    ['remoteBounds', false],
    ['remoteRight', false],
    ['qpRight', false],
    ['foreignKey', false],
    ['misaligned', false],
    ['oldRemoteKey', false],
  ])('hold that an atomic with the flaw %s may have changed its word: %s', (flaw, mayHave) => {
    const isWord = (one: CompletionSeen, opcode: number): boolean =>
      opcode === IBV_WR_ATOMIC_FETCH_AND_ADD && one.status === IBV_WC_SUCCESS;
    const [program, completion] = firstWhere(isWord);
    const { bytes: _, ...rest } = { ...completion, status: IBV_WC_LOC_PROT_ERR };
    const told = { ...withCompletion(program, completion, [rest]), story: withFlaw(completion.id, flaw) };
    expect(verdict('atomics', told).length === 0).toBe(mayHave);
  });

  it('find a report that counts otherwise than the programs', () => {
    for (const [name, row] of Object.entries(played.report.operations)) {
      const operations = { ...played.report.operations, [name]: { ...row, count: row.count + 1 } };
      expect(verdict('report', { report: { ...played.report, operations } }).join()).toMatch(/successful/);
    }
  });

  it("find a latency that the programs' clocks contradict", () => {
    for (const [name, row] of Object.entries(played.report.operations)) {
      if (row.latencyPs === null) continue;
      const latencyPs = { ...row.latencyPs, max: row.latencyPs.max * 10 };
      const operations = { ...played.report.operations, [name]: { ...row, latencyPs } };
      expect(verdict('report', { report: { ...played.report, operations } }).join()).toMatch(/latency/);
    }
  });

  it('find packets that no message demands', () => {
    const wire = played.report.wire.map((direction) => ({
      ...direction,
      opcodes: Object.fromEntries(
        Object.entries(direction.opcodes).map(([opcode, row]) => [
          opcode,
          { ...row, packets: row.packets + 1 },
        ]),
      ),
    }));
    expect(verdict('report', { report: { ...played.report, wire } }).join()).toMatch(/on the cable/);
  });

  it('find packets that are shorter than their headers and payload', () => {
    const wire = played.report.wire.map((direction) => ({
      ...direction,
      opcodes: Object.fromEntries(
        Object.entries(direction.opcodes).map(([opcode, row]) => [opcode, { ...row, bytes: row.bytes - 1 }]),
      ),
    }));
    expect(verdict('report', { report: { ...played.report, wire } }).join()).toMatch(/bytes on the cable/);
  });

  it('find an answer that came sooner than the cable lets it, and more RNR NAKs than their delays leave time for', () => {
    const { config, nodes } = played.report;
    const far = { ...config, wire: { ...config.wire, cableMetres: 10_000 } };
    expect(verdict('report', { report: { ...played.report, config: far } }).join()).toMatch(
      /the cable and its/,
    );
    const refused = nodes.map((node) => ({
      ...node,
      hca: { ...node.hca, transport: { rnrNakReceived: 1_000_000 } },
    }));
    expect(verdict('report', { report: { ...played.report, nodes: refused } }).join()).toMatch(/RNR NAKs/);
  });

  it('find time counted for a time-out that there was not', () => {
    const operations = Object.fromEntries(
      Object.entries(played.report.operations).map(([name, row]) => [
        name,
        { ...row, milestonesPs: { ...row.milestonesPs, ackTimeout: 1000 } },
      ]),
    );
    expect(verdict('report', { report: { ...played.report, operations } }).join()).toMatch(
      /counted for ackTimeout/,
    );
    const nodes = played.report.nodes.map((node) => ({
      ...node,
      hca: { ...node.hca, transport: { ackTimeout: 1 } },
    }));
    expect(verdict('report', { report: { ...played.report, nodes } }).join()).toMatch(
      /counted for ackTimeout/,
    );
  });

  it('find RNR NAKs without time counted for their delays, unless each may have come after an answer that was lost', () => {
    const told = (transport: Readonly<Record<string, number>>): string => {
      const nodes = played.report.nodes.map((node) => ({ ...node, hca: { ...node.hca, transport } }));
      return verdict('report', { report: { ...played.report, nodes } }).join();
    };
    expect(told({ rnrNakReceived: 1 })).toMatch(/counted for rnrDelay/);
    expect(told({ rnrNakReceived: 1, missingResponse: 1 })).toBe('');
    expect(told({ rnrNakReceived: 2, missingResponse: 1 })).toMatch(/counted for rnrDelay/);
    expect(told({ missingResponse: 1 })).toBe('');
  });

  it('find an event that did not come, what must not happen, and a second limit event of an SRQ', () => {
    const missing = ['an event of CQ 0, armed for all'];
    expect(
      verdict(
        'events',
        seenAs(0, () => ({ missing })),
      ).join(),
    ).toMatch(/did not get an event of CQ 0/);
    const surprises = ['request 1 of QP 0 completed when its queue was drained'];
    expect(
      verdict(
        'events',
        seenAs(1, () => ({ surprises })),
      ).join(),
    ).toMatch(/queue was drained/);
    const events = ['IBV_EVENT_SRQ_LIMIT_REACHED', 'IBV_EVENT_SRQ_LIMIT_REACHED'];
    expect(
      verdict(
        'events',
        seenAs(0, () => ({ events, limitsArmed: 2 })),
      ),
    ).toEqual([]);
    expect(
      verdict(
        'events',
        seenAs(0, () => ({ events, limitsArmed: 1 })),
      ).join(),
    ).toMatch(/2 times/);
  });

  it('find what is held at the end, and accesses of the device to what is not its', () => {
    expect(verdict('ending', { leftovers: [{ frames: 1 }, null] }).join()).toMatch(/still holds 1 frames/);
    const access = { atPs: 1, access: 'read', address: 0x1000, lengthBytes: 64, frame: 'free' } as const;
    const nodes = played.report.nodes.map((node) => ({
      ...node,
      unownedAccesses: { count: 1, first: [access] },
    }));
    expect(verdict('ending', { report: { ...played.report, nodes } }).join()).toMatch(/a free frame/);
  });

  it('find a program that did not begin or did not end, and ledgers that do not balance', () => {
    expect(verdict('ending', { seen: [null, ...played.seen.slice(1)] })).toEqual(['program 0 did not end']);
    const failure = 'no device';
    expect(
      verdict(
        'ending',
        seenAs(1, () => ({ failure })),
      ),
    ).toEqual(['program 1 could not begin: no device']);
    const checks = { ...played.report.checks, balanced: false };
    expect(verdict('ending', { report: { ...played.report, checks } }).join()).toMatch(/do not balance/);
  });

  it('find a read that waited for a link with room for every read', () => {
    const { config, report } = played;
    const port = { ...config.pcie.endpointPort, nonPostedFifoTlps: config.dma.tagCount };
    const roomy = { ...config, pcie: { ...config.pcie, endpointPort: port } };
    const nodes = report.nodes.map((node) => {
      const dmaRead = { ...node.hca.blocks['dmaRead']!, stalledCycles: { link: 7 } };
      return { ...node, hca: { ...node.hca, blocks: { ...node.hca.blocks, dmaRead } } };
    });
    expect(verdict('stalls', { config: roomy })).toEqual([]);
    expect(verdict('stalls', { config: roomy, report: { ...report, nodes } }).join()).toMatch(
      /node 0: the read engine waited 7 cycles.*node 1/,
    );
  });

  it('find a receive that failed without a reason', () => {
    const [program, completion] = firstWhere(({ opcode }) => opcode === IBV_WC_RECV);
    const told = withCompletion(program, completion, [{ ...completion, status: IBV_WC_LOC_PROT_ERR }]);
    expect(verdict('completions', told).join()).toMatch(/LOC_PROT_ERR, and nothing is wrong with it/);
  });

  it('find a SEND that gave up sooner than its RNR delays take (IBTA 9.7.5.2.8)', () => {
    const [program, completion] = firstWhere((_, opcode) => opcode === IBV_WR_SEND);
    // A timer of code 0 is 655 ms.
    const programs = played.story.programs.map((plan) => ({
      ...plan,
      qps: plan.qps.map((qp) => ({ ...qp, rnrRetry: 6, rnrTimer: 0 })),
    }));
    const failed = { ...completion, status: IBV_WC_RNR_RETRY_EXC_ERR };
    const told = { ...withCompletion(program, completion, [failed]), story: { ...played.story, programs } };
    expect(verdict('completions', told).join()).toMatch(/6 delays take 3932160000000/);
  });

  it('find a message that came twice', () => {
    const [program, completion] = firstWhere(({ opcode }) => opcode === 128);
    const opcodes = [...sendsOf(played.story)].filter(({ plan }) => consumesReceive(plan.opcode));
    expect(opcodes.length).toBeGreaterThan(0);
    const told = withCompletion(program, completion, [
      completion,
      { ...completion, id: completion.id + 1_000_000 },
    ]);
    expect(verdict('completions', told)).not.toEqual([]);
  });
});
