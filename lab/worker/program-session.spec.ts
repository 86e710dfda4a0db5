/** The lab's programs as its page runs them, and the reports about a reader's own program. */
import { describe, expect, it } from 'vitest';
import { faultMenu, labPrograms } from '../page/programs.ts';
import type {
  Arrival,
  OperationPicture,
  PostedOperation,
  ProgramOrder,
  ProgramProgress,
  StandingPlace,
} from '../protocol.ts';
import { ProgramSession } from './program-session.ts';

const machine = { profile: 'connectx3-qdr', set: {}, seed: 1 };
const textOf = (name: string): string => labPrograms.find((each) => each.name === name)!.text;

async function outcomeOf(
  text: string,
  more: Partial<ProgramOrder> = {},
  stepPs = 200_000_000,
): Promise<ProgramProgress> {
  const session = new ProgramSession();
  expect(await session.load({ text, machine, faults: [], ...more })).toEqual([]);
  for (;;) {
    const progress = await session.runFor(stepPs);
    if (progress.hasEnded) return progress;
  }
}

/** Line of a text that contains this. */
const lineOf = (text: string, part: string): number =>
  text.split('\n').findIndex((line) => line.includes(part)) + 1;

const isMistake = (name: string): boolean =>
  labPrograms.find((each) => each.name === name)!.title.startsWith('Mistake');

/** Mistakes, each with a part of the named line and of the sentence. */
const mistakes: readonly (readonly [name: string, line: string, says: RegExp])[] = [
  ['buffer-reused', 'fill(2)', /which the device reads for work request 1/],
  ['cq-overrun', 'createCq(endpoint', /CQ 0x80 of host 0 overran .* 8 entries/],
  ['missing-receive', '', /waited .* in \d+ RNR NAKs: its peer had no receive posted/],
  ['wrong-key', 'postSend(qp', /uses rkey 0x\w+; the region there has key/],
  ['short-region', 'const half = await regMr', /reaches 2048 bytes beyond the region/],
  ['deregistered', 'await deregMr', /whose region host 1 deregistered/],
  ['wrong-qpn', '{ ...toRtr', /sends to QP 0x3039, which host 1 does not have/],
  ['wrong-psn', '{ ...toRts', /begins with PSN 0xc8 \(sq_psn\), its peer expects 0x64/],
  ['wrong-qkey', 'postSend(qp', /they carry Q_Key 0x22222222, the QP has Q_Key 0x11111111/],
  ['unsignalled', 'postSend(qp', /1 request of QP .* posted unsignalled/],
  ['queue-full', 'const error = postSend', /holds 31 of 31 requests, all of them unsignalled/],
  ['lost-wakeup', 'await pollCq', /with 1 completion left in it/],
  ['one-sided', 'await spinCq', /1 WRITE, 0 READs and 0 atomics, which complete at the peer only/],
  ['both-wait', 'await spinCq', /no request that could complete there is under way/],
];

describe('the mistakes of the lab', () => {
  it.each(mistakes)('%s is found at its line', async (name, part, says) => {
    const text = textOf(name);
    const { remarks } = await outcomeOf(text, {}, 2e9);
    const remark = remarks.find((one) => says.test(one.text));
    expect(remark, JSON.stringify(remarks)).toBeDefined();
    const lines = text.split('\n').flatMap((line, at) => (line.includes(part) ? [at + 1] : []));
    if (part === '') expect(remark!.line).toBeUndefined();
    else expect(lines).toContain(remark!.line);
  });

  it('are all in the menu', () => {
    const names = labPrograms.map(({ name }) => name).filter(isMistake);
    expect(mistakes.map(([name]) => name).toSorted()).toEqual(names.toSorted());
  });
});

describe('the programs of the lab', () => {
  const right: Readonly<Record<string, (progress: ProgramProgress) => void>> = {
    'ping-pong': ({ results }) => expect(results[0]).toBe(results[0]),
    rpc: ({ results }) =>
      expect(results[0]).toBe(String(Array.from({ length: 40 }, (_, n) => n * n).reduce((a, b) => a + b))),
    'key-value': ({ results }) => expect(results[0]).toBe('23'),
    ring: ({ results }) => expect(results[1]).toBe('50'),
    barrier: ({ results }) => expect(results).toEqual(['5', '5']),
  };
  it.each(labPrograms.map(({ name }) => name).filter((name) => !isMistake(name)))(
    '%s ends with the right result and no finding',
    async (name) => {
      const progress = await outcomeOf(textOf(name));
      expect(progress.remarks).toEqual([]);
      expect(progress.results.some((result) => result !== undefined)).toBe(true);
      right[name]?.(progress);
    },
  );

  it('a buffer that is refilled while in flight is found at its line, with the line of its post', async () => {
    const text = textOf('buffer-reused');
    const { remarks } = await outcomeOf(text);
    expect(remarks).toHaveLength(1);
    expect(remarks[0]).toMatchObject({ line: lineOf(text, 'fill(2)'), severity: 'error' });
    expect(remarks[0]!.text).toContain(`posted at line ${lineOf(text, 'postSend(qp')}`);
  });

  it('a CQ that overruns leaves fewer completions than requests', async () => {
    const { results } = await outcomeOf(textOf('cq-overrun'));
    expect(JSON.parse(results[0]!)).toMatch(/^\d of 20 completions/);
  });

  it('a SEND without a receive completes when the receive is posted', async () => {
    const { results, atPs } = await outcomeOf(textOf('missing-receive'));
    expect(results[0]).toBe('0');
    expect(atPs).toBeGreaterThan(2e9);
  });

  it('a wrong rkey ends in a remote access error, and later requests are flushed', async () => {
    const { results } = await outcomeOf(textOf('wrong-key'));
    expect(JSON.parse(results[0]!)).toBe('0, 10, 5');
  });

  it.each(faultMenu.map(({ text }) => text).filter((text) => text !== ''))(
    'run with the fault %s',
    async (fault) => {
      const { hasEnded } = await outcomeOf(textOf('ping-pong'), { faults: [fault] });
      expect(hasEnded).toBe(true);
    },
  );
});

describe('a program of the reader', () => {
  it('gives the same result in steps as in one run', async () => {
    const text = textOf('rpc');
    const session = new ProgramSession();
    await session.load({ text, machine, faults: [] });
    let progress = await session.runFor(1_000_000);
    while (!progress.hasEnded) progress = await session.runFor(10_000_000);
    expect(progress.log).toEqual((await outcomeOf(text)).log);
  });

  it.each([
    ['that cannot be read', 'export const host0 = async () => {\n  const = 3;\n};', 2],
    ['that throws when it is read', 'const a = 1;\nthrow new Error("no");', 2],
    ['that imports something else', "import { readFileSync } from 'node:fs';\nreadFileSync('x');", undefined],
    ['without hosts', 'export const x = 1;', undefined],
  ])('%s is rejected with its line', async (_what, text, line) => {
    const remarks = await new ProgramSession().load({ text, machine, faults: [] });
    expect(remarks).toHaveLength(1);
    expect(remarks[0]).toMatchObject({ line, severity: 'error' });
  });

  it('that throws is reported at its line', async () => {
    const text =
      'export async function host0({ cpu }) {\n  await cpu.sleep(1000);\n  throw new Error("lost");\n}';
    const { remarks } = await outcomeOf(text);
    expect(remarks[0]).toMatchObject({ line: 3, severity: 'error' });
    expect(remarks[0]!.text).toContain('lost');
  });

  it('that waits indefinitely ends, with the call that it waits in', async () => {
    const text = "export async function host0({ exchange }) {\n  await exchange.take('nothing');\n}";
    const { remarks } = await outcomeOf(text, {}, 10_000_000_000_000);
    expect(remarks[0]!.text).toMatch(/nothing/);
  });

  it.each([
    ['several in one statement', 'export const host0 = async () => 1,\n  host1 = async () => 2;'],
    ['by a pattern', 'export const { host0, two: host1 } = { host0: async () => 1, two: async () => 2 };'],
    [
      'of a type',
      'type Run = () => Promise<number>;\nexport let host0: Run = async () => 1, host1: Run = async () => { const host2 = 2; return host2; };',
    ],
  ])('may export its hosts %s', async (_what, text) => {
    expect((await outcomeOf(text)).results).toEqual(['1', '2']);
  });

  it('shares no variable with the other host', async () => {
    const text =
      'let count = 0;\nconst run = async () => ++count;\nexport const host0 = run;\nexport const host1 = run;';
    expect((await outcomeOf(text)).results).toEqual(['1', '1']);
  });
});

/** Continues a program from its stop to the next breakpoint, as the page does: one run finds it, a second run stops at it. */
async function continued(
  order: ProgramOrder,
  stood?: StandingPlace,
): Promise<{ readonly stands: ProgramProgress; readonly arrival: Arrival } | undefined> {
  const session = new ProgramSession();
  expect(await session.load({ ...order, ...(stood === undefined ? {} : { stood }) })).toEqual([]);
  for (;;) {
    const { arrival, hasEnded } = await session.runFor(200_000_000);
    if (arrival === undefined && hasEnded) return undefined;
    if (arrival === undefined) continue;
    await session.load({ ...order, stood: { atPs: arrival.atPs, reached: arrival } });
    return { stands: await session.runFor(arrival.atPs), arrival };
  }
}

/** Every stop of a program, in order. */
async function stopsOf(
  order: ProgramOrder,
): Promise<readonly { stands: ProgramProgress; arrival: Arrival }[]> {
  const stops = [];
  for (let stood: StandingPlace | undefined; ; ) {
    const next = await continued(order, stood);
    if (next === undefined) return stops;
    stops.push(next);
    expect(stops.length).toBeLessThan(20);
    stood = { atPs: next.arrival.atPs, reached: next.arrival };
  }
}

describe('breakpoints', () => {
  const timed = `export async function host0({ cpu, log }) {
  for (let round = 1; round <= 3; round++) {
    await cpu.sleep(1_000_000);
    log('before ' + round + ' ' + cpu.localPs);
    log('after ' + round);
  }
  return 'done';
}
export async function host1({ cpu, log }) {
  await cpu.sleep(1_500_000);
  log('other ' + cpu.localPs);
}`;

  it('stop before their line, in each round, at the instant of the host’s own clock', async () => {
    const plain = await outcomeOf(timed);
    const loggedPs = plain.log
      .filter(({ text }) => text.startsWith('before'))
      .map(({ text }) => Number(text.split(' ')[2]));
    const stops = await stopsOf({
      text: timed,
      machine,
      faults: [],
      breakpoints: [lineOf(timed, "log('before")],
    });
    expect(stops.map(({ stands }) => stands.atPs)).toEqual(loggedPs);
    expect(stops.map(({ stands }) => stands.lines[0])).toEqual([4, 4, 4]);
    expect(stops.map(({ stands }) => stands.log.filter(({ node }) => node === 0).length)).toEqual([0, 2, 4]);
  });

  it('stop at two lines of one instant one after another, and before the line that returns', async () => {
    const stops = await stopsOf({ text: timed, machine, faults: [], breakpoints: [4, 5, 7] });
    expect(stops.map(({ arrival }) => arrival.line)).toEqual([4, 5, 4, 5, 4, 5, 7]);
    expect(stops.map(({ stands }) => stands.log.filter(({ node }) => node === 0).length)).toEqual([
      0, 1, 2, 3, 4, 5, 6,
    ]);
    for (const { stands } of stops) expect([stands.hasEnded, stands.results]).toEqual([false, []]);
    expect(stops[0]!.arrival.atPs).toBe(stops[1]!.arrival.atPs);
  });

  it('stop at the earlier one of both hosts', async () => {
    const stops = await stopsOf({ text: timed, machine, faults: [], breakpoints: [4, 11] });
    expect(stops.map(({ arrival }) => arrival.node)).toEqual([0, 1, 0, 0]);
    const instants = stops.map(({ arrival }) => arrival.atPs);
    expect(instants).toEqual(instants.toSorted((a, b) => a - b));
  });

  it('do not change a run, and report nothing for a line that cannot stop', async () => {
    const text = textOf('ping-pong');
    const breakpoints = [lineOf(text, 'program.log('), 1];
    const stops = await stopsOf({ text, machine, faults: [], breakpoints });
    expect(stops.map(({ arrival }) => arrival.node).toSorted()).toEqual([0, 1]);
    const { arrival, ...rest } = await outcomeOf(text, { breakpoints });
    expect(arrival?.line).toBe(breakpoints[0]);
    const { arrival: without, ...plain } = await outcomeOf(text);
    expect(without).toBeUndefined();
    expect(rest).toEqual(plain);
  });

  it('are drawn with the packets in flight at their instant', async () => {
    const text = textOf('write-and-poll');
    const order = { text, machine, faults: [], breakpoints: [lineOf(text, 'postSend(')] };
    const { arrival } = (await continued(order))!;
    const session = new ProgramSession();
    await session.load(order);
    await session.runFor(arrival.atPs + 5_000_000);
    const [first] = await session.operations();
    await session.load({ ...order, watchedPs: arrival.atPs });
    await session.runFor(arrival.atPs + 5_000_000);
    expect(first).toMatchObject({ node: 0, line: arrival.line });
    // The line is about to post: the post follows, and its doorbell leaves the host.
    const { records, tracks } = await session.moment();
    const posted = records.find(({ kind }) => kind === 'posted')!;
    expect(tracks[posted.track]!.process).toBe('host0');
    expect(posted.fromPs).toBe(first!.postedPs - arrival.atPs);
    expect(posted.fromPs).toBeGreaterThanOrEqual(0);
    const doorbell = records.find(
      ({ kind, label }) => kind === 'tlp' && /^MWr (?:doorbell|blueFlame)$/.test(label),
    )!;
    expect(doorbell.fromPs).toBeGreaterThanOrEqual(posted.fromPs);
    expect(doorbell.arrivesPs).toBeGreaterThan(doorbell.toPs);
  });
});

/** A program's operations, and the picture of one of them from a second run. */
async function watchedIn(
  text: string,
  choose: (operations: readonly PostedOperation[]) => PostedOperation,
): Promise<{
  readonly all: readonly PostedOperation[];
  readonly one: PostedOperation;
  readonly picture: OperationPicture;
}> {
  const session = new ProgramSession();
  await session.load({ text, machine, faults: [] });
  while (!(await session.runFor(1e9)).hasEnded);
  const all = await session.operations();
  const one = choose(all);
  const toPs = one.postedPs + one.latencyPs!;
  const watched = { node: one.node, ordinal: one.ordinal, fromPs: one.postedPs, toPs };
  await session.load({ text, machine, faults: [], watched });
  for (let atPs = 0, hasEnded = false; !hasEnded && atPs < toPs + 4e6; )
    ({ atPs, hasEnded } = await session.runFor(1e9));
  return { all, one, picture: await session.picture() };
}

describe('the operations that a program posted', () => {
  it('are listed with the line of each post, the verb and the latency of the program’s own clock', async () => {
    const text = `import { openEndpoint, createBuffer, createCq, createRcQps, connectRc, postSend, spinCq, IbvWc, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED } from 'hca-emulator';
async function open(program) {
  const endpoint = await openEndpoint(program);
  const buffer = await createBuffer(endpoint, 4096);
  const cq = await createCq(endpoint.context, 16);
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 });
  const [far] = [await connectRc(endpoint, [qp], 'x', { address: buffer.address, rkey: buffer.region.rkey })];
  return { buffer, cq, qp, far: far.note ?? far };
}
export async function host0(program) {
  const { buffer, cq, qp, far } = await open(program);
  const sgList = [{ addr: buffer.address, length: 4096, lkey: buffer.region.lkey }];
  const more = { wrId: 1, sgList, numSge: 1, sendFlags: IBV_SEND_SIGNALED, wr: { rdma: { remoteAddr: far.address, rkey: far.rkey } } };
  await program.cpu.settle();
  const beganPs = program.cpu.localPs;
  postSend(qp, { ...more, opcode: IBV_WR_RDMA_WRITE });
  await spinCq(cq, 1, [new IbvWc()]);
  const tookPs = program.cpu.localPs - beganPs;
  postSend(qp, { ...more, opcode: IBV_WR_RDMA_READ });
  await spinCq(cq, 1, [new IbvWc()]);
  await program.exchange.put('done', true);
  return tookPs;
}
export async function host1(program) {
  await open(program);
  await program.exchange.take('done');
}`;
    const { all, picture, one } = await watchedIn(text, ([, read]) => read!);
    expect(all.map(({ node, ordinal, line, operation }) => [node, ordinal, line, operation])).toEqual([
      [0, 0, lineOf(text, 'IBV_WR_RDMA_WRITE });'), 'WRITE'],
      [0, 1, lineOf(text, 'IBV_WR_RDMA_READ });'), 'READ'],
    ]);
    expect(all.map(({ payloadBytes, hasFailed }) => [payloadBytes, hasFailed])).toEqual([
      [4096, false],
      [4096, false],
    ]);
    // The program's clock also counts the instructions of the post before its doorbell and of the poll after its CQE.
    const { results } = await outcomeOf(text);
    const tookPs = Number(results[0]);
    expect(all[0]!.latencyPs).toBeLessThanOrEqual(tookPs);
    expect(all[0]!.latencyPs).toBeGreaterThan(0.9 * tookPs);
    // A READ brings its bytes to the host that posted it.
    expect([picture.operation, picture.node, picture.payloadBytes]).toEqual(['READ', 0, 4096]);
    expect(picture.latencyPs).toBe(one.latencyPs);
    expect(picture.milestones.map((each) => each.text)).toContain(
      'The last bytes are in the memory of host 0',
    );
  });

  it('are drawn from either host, with the stages that tile the latency and milestones of their own host', async () => {
    const { all, one, picture } = await watchedIn(
      textOf('ping-pong'),
      (operations) => operations.filter(({ node }) => node === 1)[7]!,
    );
    // 20 rounds; each host sends one message per round.
    expect(all.filter(({ node }) => node === 0)).toHaveLength(20);
    expect(all.filter(({ node }) => node === 1)).toHaveLength(20);
    expect(all.every(({ line }) => line === lineOf(textOf('ping-pong'), 'postSend(qp!'))).toBe(true);
    expect([picture.node, picture.postedPs, picture.latencyPs, picture.status]).toEqual([
      1,
      one.postedPs,
      one.latencyPs,
      'SUCCESS',
    ]);
    expect(picture.stages.reduce((sum, { fromPs, toPs }) => sum + toPs - fromPs, 0)).toBe(one.latencyPs);
    const said = picture.milestones.map(({ text }) => text);
    for (const each of [
      'The device of host 1 takes the doorbell',
      'The last packet of host 1 has arrived at the other device',
      'The last bytes are in the memory of host 0',
      'The receiver’s CQE is in the memory of host 0',
      'The CQE is in the memory of host 1',
    ])
      expect(said).toContain(each);
    const orderPs = (text: string): number => picture.milestones.find((each) => each.text === text)!.atPs;
    // The receiver's CQE says that the payload is in memory.
    expect(orderPs('The last bytes are in the memory of host 0')).toBeLessThan(
      orderPs('The receiver’s CQE is in the memory of host 0'),
    );
    expect(picture.isBalanced).toBe(true);
  });

  it('that failed are drawn with the status of their completion', async () => {
    const { one, picture } = await watchedIn(
      textOf('wrong-key'),
      (operations) => operations.find(({ hasFailed }) => hasFailed)!,
    );
    expect(one.line).toBe(lineOf(textOf('wrong-key'), 'postSend(qp'));
    expect(picture.status).toBe('REM_ACCESS_ERR');
  });

  it.each(labPrograms.map(({ name }) => name).filter((name) => !name.startsWith('example')))(
    '%s computes the same if its last operation is watched, and the operation is drawn',
    async (name) => {
      const order = { text: textOf(name), machine, faults: [] };
      const session = new ProgramSession();
      const toEnd = async (): Promise<ProgramProgress> => {
        for (;;) {
          const progress = await session.runFor(200_000_000);
          if (progress.hasEnded) return progress;
        }
      };
      await session.load(order);
      const plain = await toEnd();
      const last = (await session.operations()).findLast(
        ({ latencyPs, isOnDevice }) => latencyPs !== undefined && isOnDevice,
      );
      // Both hosts wait: neither posts.
      if (name === 'both-wait') return expect(last).toBeUndefined();
      const { node, ordinal, postedPs: fromPs, latencyPs } = last!;
      await session.load({ ...order, watched: { node, ordinal, fromPs, toPs: fromPs + latencyPs! } });
      expect(await toEnd()).toEqual(plain);
      const picture = await session.picture();
      expect([picture.node, picture.postedPs, picture.latencyPs]).toEqual([node, fromPs, latencyPs]);
      expect(picture.milestones[0]?.text).toMatch(/^The program has posted the request/);
      expect(picture.stages.at(-1)?.toPs).toBe(latencyPs);
    },
  );
});
