/**
 * The CM in every state: what each message does, which messages are retransmitted and which are rejected. Messages and their
 * order are those of IBTA volume 1, 12.9, and of the captures of stock Linux in reference/wire (cm-*).
 */
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { mad } from '../../abi/mad.ts';
import { CmAttribute, type CmValues, cmMad, decodeCm } from './cm-mad.ts';
import type { CmState } from './connection.ts';
import { CmBench, type MessageName, type Program, parameters, requestPrivateData } from './testing-cm.ts';

/** 12.7.20: 4.096 µs × 2^code. A path of life time 18 both ways, and a CM that answers within code 20. */
const answerPs = 2 * 4_096_000 * 2 ** 18 + 4_096_000 * 2 ** 20;
const minutePs = 60e12;
const hourPs = 60 * minutePs;
const conversationOfRping = ['REQ >', '< REP', 'RTU >', 'DREQ >', '< DREP'];

let bench: CmBench;
beforeEach(() => {
  bench = new CmBench();
});

const stateOf = ({ connection }: Program): CmState => connection!.state;
const droppedAt = (node: number) => {
  const entries = Object.entries(bench.managers[node]!.dropped).filter(([, count]) => count > 0);
  return Object.fromEntries(entries);
};
const message = <A extends CmAttribute>(attribute: A, values: CmValues<A>): Uint8Array =>
  cmMad(attribute, 9n, values);
/** Loses the first `count` messages of a name. */
const lose = (name: MessageName, count: number): void => {
  let left = count;
  bench.pass = (sent) => sent.name !== name || left-- <= 0;
};

describe('a connection', () => {
  it('capture cm-rping: is requested, accepted, used and ended by these messages', async () => {
    const [active, passive] = await bench.established();
    expect([active.events, passive.events]).toEqual([['replied', 'established'], ['established']]);
    active.connection!.disconnect(bench.cpu);
    await bench.deliver();
    expect([stateOf(active), stateOf(passive)]).toEqual(['DreqSent', 'DreqRcvd']);
    passive.connection!.disconnect(bench.cpu);
    await bench.deliver();
    expect(bench.conversation).toEqual(conversationOfRping);
    expect([stateOf(active), stateOf(passive)]).toEqual(['Timewait', 'Timewait']);
    await bench.elapse(minutePs);
    expect(active.events.slice(2)).toEqual(['disconnected', 'timewait exit']);
    expect(bench.managers.map((manager) => manager.connectionCount)).toEqual([0, 0]);
  });

  it('IBTA 12.7.31: Starting PSN is that of the first packet that its receiver sends, as in capture cm-wt', async () => {
    const [{ connection: active }, { connection: passive }] = await bench.established();
    const request = decodeCm(CmAttribute.REQ, bench.sent[0]!.bytes);
    const reply = decodeCm(CmAttribute.REP, bench.sent[1]!.bytes);
    expect(passive!.sqPsn).toBe(request.startingPsn);
    expect(active!.rqPsn).toBe(request.startingPsn);
    expect(active!.sqPsn).toBe(reply.startingPsn);
    expect(passive!.rqPsn).toBe(reply.startingPsn);
    expect(request.startingPsn).not.toBe(reply.startingPsn);
  });

  it('IBTA 12.7.29, 12.7.30: the resources of one side bound the depth of the other', async () => {
    const [{ connection: active }, { connection: passive }] = await bench.established();
    // Both requested 2 resources and a depth of 3.
    expect(active).toMatchObject({ responderResources: 3, initiatorDepth: 2, remoteQpn: 0x52 });
    expect(passive).toMatchObject({ responderResources: 2, initiatorDepth: 3, remoteQpn: 0x48 });
  });

  it('capture cm-reject: is rejected with reason 8 without a listener', async () => {
    const program = bench.connect();
    await bench.deliver();
    expect(program.events).toEqual(['rejected 8']);
    const rej = decodeCm(CmAttribute.REJ, bench.sent[1]!.bytes);
    expect(rej).toMatchObject({
      localCommId: 0,
      remoteCommId: program.connection!.localId,
      messageRejected: 0,
    });
    expect(stateOf(program)).toBe('Idle');
  });

  it('IBTA 12.6.7.2: is rejected by a program with reason 28', async () => {
    const taken = bench.listen();
    const program = bench.connect();
    await bench.deliver();
    taken[0]!.connection!.reject(bench.cpu, Uint8Array.of(5));
    await bench.deliver();
    expect(program.events).toEqual(['rejected 28']);
    expect(bench.managers[1]!.connectionCount).toBe(0);
  });

  it('both sides may end at once, and each answers the other', async () => {
    const [active, passive] = await bench.established();
    active.connection!.disconnect(bench.cpu);
    passive.connection!.disconnect(bench.cpu);
    await bench.deliver();
    expect([stateOf(active), stateOf(passive)]).toEqual(['Timewait', 'Timewait']);
    expect(active.events.at(-1)).toBe('disconnected');
    expect(passive.events.at(-1)).toBe('disconnected');
  });

  it('programs of both sides that die at once cost each side a DREQ and a DREP', async () => {
    const [active, passive] = await bench.established();
    for (const { connection } of [active, passive]) connection!.abandon(bench.cpu);
    await bench.elapse(hourPs);
    expect(bench.conversation.slice(3)).toEqual(['DREQ >', '< DREQ', '< DREP', 'DREP >']);
    expect(bench.managers.map((manager) => manager.connectionCount)).toEqual([0, 0]);
  });
});

describe('a lost message', () => {
  it('a REQ is retransmitted when its time is up', async () => {
    lose('REQ', 2);
    const taken = bench.listen();
    bench.connect();
    await bench.elapse(2 * answerPs);
    expect(taken).toHaveLength(1);
    const times = bench.sent.filter(({ name }) => name === 'REQ').map(({ atPs }) => atPs);
    expect(times).toEqual([0, answerPs, 2 * answerPs]);
    // The same message, including its transaction ID.
    expect(bench.sent[2]!.bytes).toEqual(bench.sent[0]!.bytes);
  });

  it('a REQ that is never answered ends after 15 retries, and the peer is notified', async () => {
    lose('REQ', 99);
    const program = bench.connect();
    await bench.elapse(16 * answerPs - 1);
    expect(program.events).toEqual([]);
    await bench.elapse(1);
    expect(program.events).toEqual(['unreachable']);
    expect(bench.sent.filter(({ name }) => name === 'REQ')).toHaveLength(16);
    expect(decodeCm(CmAttribute.REJ, bench.sent.at(-1)!.bytes).reason).toBe(4);
    expect(bench.managers[0]!.connectionCount).toBe(0);
  });

  it.each(['REP', 'RTU', 'DREQ', 'DREP'] as const)(
    'a lost %s changes nothing except the time',
    async (name) => {
      lose(name, 1);
      const taken = bench.listen();
      const active = bench.connect();
      await bench.deliver();
      taken[0]!.connection!.reply(bench.cpu, parameters(0x52));
      await bench.elapse(answerPs);
      active.connection!.readyToUse(bench.cpu);
      // The REP has arrived twice: an MRA makes the passive side wait for another 69 s.
      await bench.elapse(3 * minutePs);
      expect([stateOf(active), stateOf(taken[0]!)]).toEqual(['Established', 'Established']);
      active.connection!.disconnect(bench.cpu);
      await bench.elapse(answerPs);
      taken[0]!.connection!.disconnect(bench.cpu);
      await bench.elapse(hourPs);
      expect(active.events).toEqual(['replied', 'established', 'disconnected', 'timewait exit']);
      expect(taken[0]!.events).toEqual(['established', 'disconnected', 'timewait exit']);
    },
  );

  it('a DREQ that is never answered also ends after 15 retries', async () => {
    const [active] = await bench.established();
    bench.pass = () => false;
    active.connection!.disconnect(bench.cpu);
    await bench.elapse(16 * answerPs);
    expect(active.events.at(-1)).toBe('disconnected');
    expect(stateOf(active)).toBe('Timewait');
  });

  it('IBTA 12.7.20: a REP to a peer that may take five hours is repeated after that time', async () => {
    const taken = bench.listen();
    const code = 31;
    bench.forge(
      1,
      message(CmAttribute.REQ, {
        localCommId: 5,
        serviceId: 7n,
        localQpn: 0x48,
        localCmResponseTimeout: code,
        primaryLocalAckTimeout: code,
        privateData: requestPrivateData,
      }),
    );
    taken[0]!.connection!.reply(bench.cpu, parameters(0x52));
    // The path there and back, and the peer's own time: 2 × 2^30 + 2^31 units of 4.096 µs.
    const answerPs = 4_096_000 * 2 ** 32;
    await bench.elapse(answerPs + minutePs);
    expect(bench.sent.map(({ name, atPs }) => [name, Math.round(atPs / 1e12)])).toEqual([
      ['REP', 0],
      ['REP', Math.round(answerPs / 1e12)],
    ]);
  });
});

describe('a repeated message', () => {
  it('changes nothing, of any kind', async () => {
    bench.pass = () => 2;
    const [active, passive] = await bench.established();
    active.connection!.disconnect(bench.cpu);
    await bench.deliver();
    passive.connection!.disconnect(bench.cpu);
    await bench.elapse(hourPs);
    expect(active.events).toEqual(['replied', 'established', 'disconnected', 'timewait exit']);
    expect(passive.events).toEqual(['established', 'disconnected', 'timewait exit']);
    expect(bench.managers.map((manager) => manager.connectionCount)).toEqual([0, 0]);
  });

  it('IBTA 12.6.6: a REQ while the program decides is answered by MRA, and the active side waits longer', async () => {
    const taken = bench.listen();
    const program = bench.connect();
    await bench.elapse(answerPs);
    expect(bench.conversation).toEqual(['REQ >', 'REQ >', '< MRA']);
    expect([stateOf(program), stateOf(taken[0]!)]).toEqual(['MraReqRcvd', 'MraReqSent']);
    // Service time-out 24, 68.7 s, and the path there and back: ten response times pass without a REQ.
    await bench.elapse(10 * answerPs);
    expect(bench.conversation).toHaveLength(3);
    taken[0]!.connection!.reply(bench.cpu, parameters(0x52));
    await bench.deliver();
    expect(program.events).toEqual(['replied']);
  });

  it('cm_mra_handler: after an MRA the active side repeats after the MRA’s time plus the path there and back', async () => {
    bench.listen();
    bench.connect();
    await bench.elapse(answerPs);
    // Codes 24 of the MRA and 18 of the path.
    const longerPs = 4_096_000 * (2 ** 24 + 2 * 2 ** 18);
    await bench.elapse(longerPs - 1);
    expect(bench.conversation).toEqual(['REQ >', 'REQ >', '< MRA']);
    await bench.elapse(1);
    expect(bench.conversation).toEqual(['REQ >', 'REQ >', '< MRA', 'REQ >', '< MRA']);
  });

  it('IBTA 12.6.6: a REP while the active program decides is answered by MRA', async () => {
    const taken = bench.listen();
    const program = bench.connect();
    await bench.deliver();
    taken[0]!.connection!.reply(bench.cpu, parameters(0x52));
    await bench.elapse(answerPs);
    expect(bench.conversation).toEqual(['REQ >', '< REP', '< REP', 'MRA >']);
    expect([stateOf(program), stateOf(taken[0]!)]).toEqual(['MraRepSent', 'MraRepRcvd']);
    program.connection!.readyToUse(bench.cpu);
    await bench.deliver();
    expect(taken[0]!.events).toEqual(['established']);
  });
});

describe('a stale connection', () => {
  it('IBTA 12.9.8.3.1: a REQ for a QP that has a connection is rejected with reason 10, and the old connection ends', async () => {
    const [old, passive] = await bench.established();
    const taken = bench.listen();
    const again = bench.connect(0x48);
    await bench.deliver();
    expect(again.events).toEqual(['rejected 10']);
    expect([stateOf(old), stateOf(passive)]).toEqual(['DreqRcvd', 'DreqSent']);
    old.connection!.disconnect(bench.cpu);
    await bench.elapse(hourPs);
    expect(taken).toEqual([]);
    // The QP is free again, and its next REQ is accepted.
    bench.connect(0x48);
    await bench.deliver();
    expect(taken).toHaveLength(1);
  });

  it('IBTA 12.9.8.3.1: a REP for a QP that has a connection is rejected with reason 10, and a DREQ ends the old one', async () => {
    await bench.established([0x48, 0x52]);
    const taken = bench.listen();
    const second = bench.connect(0x49);
    await bench.deliver();
    taken[0]!.connection!.reply(bench.cpu, parameters(0x52));
    await bench.deliver();
    expect([second.events, taken[0]!.events]).toEqual([['rejected 10'], ['rejected 10']]);
    expect(bench.conversation.at(-1)).toBe('DREQ >');
    await bench.elapse(hourPs);
    // The peer's program has not answered the DREQ yet.
    expect(bench.managers.map(({ connectionCount }) => connectionCount)).toEqual([0, 1]);
  });
});

describe('a peer that was reset', () => {
  /** States of both sides, the active one first, and how programs bring them about. */
  const pairs: readonly (readonly [CmState, CmState])[] = [
    ['ReqSent', 'ReqRcvd'],
    ['MraReqRcvd', 'MraReqSent'],
    ['RepRcvd', 'RepSent'],
    ['MraRepSent', 'MraRepRcvd'],
    ['Established', 'Established'],
    ['DreqSent', 'DreqRcvd'],
    ['DreqRcvd', 'DreqSent'],
    ['Timewait', 'Timewait'],
  ];
  const [active, passive] = [0x48, 0x52];

  async function broughtTo(wanted: readonly [CmState, CmState]): Promise<[Program, Program]> {
    const taken = bench.listen();
    const asker = bench.connect(active);
    await bench.deliver();
    const asked = taken[0]!;
    const isThere = (): boolean => stateOf(asker) === wanted[0] && stateOf(asked) === wanted[1];
    const steps = [
      () => bench.elapse(wanted[0] === 'MraReqRcvd' ? answerPs : 0),
      () => asked.connection!.reply(bench.cpu, parameters(passive)),
      () => bench.elapse(wanted[0] === 'MraRepSent' ? answerPs : 0),
      () => asker.connection!.readyToUse(bench.cpu),
      () => (wanted[0] === 'DreqRcvd' ? asked : asker).connection!.disconnect(bench.cpu),
      () => asked.connection!.disconnect(bench.cpu),
    ];
    for (const step of steps) {
      if (isThere()) break;
      await step();
      await bench.deliver();
    }
    expect([stateOf(asker), stateOf(asked)]).toEqual(wanted);
    bench.stopListening();
    return [asker, asked];
  }

  /** Asks until the peer accepts the request. @returns the result of each attempt */
  async function connectedAgain(...qpns: readonly [number, number]): Promise<string[][]> {
    const attempts: string[][] = [];
    const taken = bench.listen();
    while (attempts.length < 3 && attempts.at(-1)?.[0] !== 'replied') {
      const program = bench.connect(qpns[0]);
      await bench.deliver();
      for (const { connection } of taken.slice(-1)) connection!.reply(bench.cpu, parameters(qpns[1]));
      await bench.deliver();
      attempts.push(program.events);
    }
    return attempts;
  }

  const firstRefused = [['rejected 10'], ['replied']];
  /** An old connection of the passive side, by its state: the events that its program receives because of the new REQ. */
  const endings: Readonly<Partial<Record<CmState, string>>> = {
    ReqRcvd: 'rejected 10',
    MraReqSent: 'rejected 10',
    RepSent: 'disconnected',
    MraRepRcvd: 'disconnected',
    Established: 'disconnected',
    DreqSent: 'disconnected',
    DreqRcvd: 'disconnected',
    Timewait: 'disconnected',
  };

  describe.each([
    ['with the IDs that follow and its first QP again', false, active],
    ['with the same ID for another QP, as after a restart of its host', true, active + 7],
    ['with the same ID and QP, and another Starting PSN', true, active],
  ])('IBTA 12.9.8.3.1: the active one, %s', (_how, isRebooted, qpn) => {
    it.each(pairs)(
      'from %s to %s: REJ 10 ends the old connection, and the next REQ is accepted',
      async (...wanted) => {
        const [, asked] = await broughtTo(wanted);
        const before = bench.sent.length;
        bench.reset(0, isRebooted);
        const attempts = await connectedAgain(qpn, passive + 1);
        const sent = bench.sent.slice(before);
        const refusals = sent.filter(({ name }) => name === 'REJ');
        if (wanted[1] === 'Timewait') expect([attempts, refusals]).toEqual([[['replied']], []]);
        else {
          expect(attempts).toEqual(firstRefused);
          expect(refusals).toHaveLength(1);
          const { localCommId: remoteCommId } = decodeCm(CmAttribute.REQ, sent[0]!.bytes);
          expect(decodeCm(CmAttribute.REJ, refusals[0]!.bytes)).toMatchObject({
            localCommId: 0,
            remoteCommId,
            messageRejected: 0,
            reason: 10,
          });
        }
        await bench.elapse(hourPs);
        expect(asked.events).toContain(endings[wanted[1]]);
        expect(bench.managers[1]!.dropped.duplicate).toBeLessThanOrEqual(1);
      },
    );
  });

  it.each(pairs)(
    'from %s to %s: the passive side is recognised by its REP with the old QP',
    async (...wanted) => {
      const [asker] = await broughtTo(wanted);
      bench.reset(1);
      const remembers = !['ReqSent', 'MraReqRcvd', 'Timewait'].includes(wanted[0]);
      const attempts = await connectedAgain(active + 1, passive);
      expect(attempts).toEqual(remembers ? firstRefused : [['replied']]);
      await bench.elapse(hourPs);
      const ends = asker.events.filter((event) => /rejected|disconnected|unreachable/.test(event));
      expect(ends).toHaveLength(1);
    },
  );

  it('many times, finds its peer each time with two REQs', async () => {
    await bench.established([active, passive]);
    for (let time = 0; time < 20; time++) {
      bench.reset(0, time % 2 === 1);
      expect(await connectedAgain(active, passive + time + 1)).toEqual(firstRefused);
      bench.stopListening();
    }
    await bench.elapse(hourPs);
    expect(bench.managers[1]!.connectionCount).toBeLessThanOrEqual(1);
  });

  it('IDs of a host are not reused after a reset of its device (cm.c: cm.local_id_table belongs to the module)', async () => {
    const ids = new Set<number>();
    for (let time = 0; time < 50; time++) {
      ids.add(bench.connect().connection!.localId);
      bench.reset(0);
    }
    expect(ids.size).toBe(50);
    expect(ids.has(0)).toBe(false);
  });
});

describe('messages that belong to no connection', () => {
  const ids = (program: Program) => ({
    localCommId: program.connection!.remoteId,
    remoteCommId: program.connection!.localId,
  });

  it.each([
    ['RTU', CmAttribute.RTU, {}],
    ['DREQ', CmAttribute.DREQ, { remoteQpn: 0x48 }],
    ['DREP', CmAttribute.DREP, {}],
    ['REJ', CmAttribute.REJ, { reason: 28, messageRejected: 2 }],
    ['REP', CmAttribute.REP, { localQpn: 5 }],
    ['MRA', CmAttribute.MRA, { messageMraed: 0 }],
  ] as const)('a %s with a foreign communication ID is dropped', async (_name, attribute, values) => {
    const [active] = await bench.established();
    const own = ids(active);
    bench.forge(0, message(attribute, { ...own, ...values, localCommId: own.localCommId + 7 }));
    bench.forge(0, message(attribute, { ...own, ...values, remoteCommId: own.remoteCommId + 7 }));
    expect(stateOf(active)).toBe('Established');
    expect(droppedAt(0)).toEqual({ unmatched: 2 });
  });

  it('a DREQ for another QP is dropped', async () => {
    const [active] = await bench.established();
    bench.forge(0, message(CmAttribute.DREQ, { ...ids(active), remoteQpn: 0x49 }));
    expect(stateOf(active)).toBe('Established');
    expect(droppedAt(0)).toEqual({ unmatched: 1 });
  });

  it('a DREQ of an ended connection is answered by DREP', async () => {
    bench.forge(0, message(CmAttribute.DREQ, { localCommId: 5, remoteCommId: 6, remoteQpn: 7 }));
    expect(bench.conversation).toEqual(['DREP >']);
    expect(decodeCm(CmAttribute.DREP, bench.sent[0]!.bytes)).toMatchObject({
      localCommId: 6,
      remoteCommId: 5,
    });
  });

  it('a REJ by time-out of a CA that did not send the request is dropped', async () => {
    const taken = bench.listen();
    const program = bench.connect();
    await bench.deliver();
    const additionalInformation = new Uint8Array(72);
    additionalInformation[7] = 0xee;
    const from = { localCommId: program.connection!.localId, remoteCommId: 0 };
    bench.forge(
      1,
      message(CmAttribute.REJ, { ...from, reason: 4, rejectInfoLength: 8, additionalInformation }),
    );
    expect([stateOf(taken[0]!), droppedAt(1)]).toEqual(['ReqRcvd', { unmatched: 1 }]);
  });

  it('IBTA 13.4.8.3: a MAD of another version, method or attribute is dropped', async () => {
    const good = message(CmAttribute.RTU, {});
    for (const [field, value] of [
      ['baseVersion', 2],
      ['classVersion', 1],
      ['method', 1],
      ['attributeId', 99],
      ['status', 1],
    ] as const) {
      const bytes = good.slice();
      mad.fields[field].set(new DataView(bytes.buffer), 0, value);
      bench.forge(0, bytes);
    }
    expect(droppedAt(0)).toEqual({ malformed: 5 });
  });

  it('connections survive any bytes in a message, and nothing is thrown', async () => {
    const [active, passive] = await bench.established();
    bench.listen(() => 'full');
    const attributes = Object.values(CmAttribute);
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 232, maxLength: 232 }),
        fc.constantFrom(...attributes),
        fc.constantFrom(0, 1),
        (body, attribute, node) => {
          const bytes = cmMad(attribute, 1n, {});
          bytes.set(body, 24);
          // Not the only number that is right.
          bytes[24] = 0x55;
          bench.forge(node, bytes);
        },
      ),
      { numRuns: 500, seed: 19 },
    );
    expect([stateOf(active), stateOf(passive)]).toEqual(['Established', 'Established']);
  });
});

describe('a full backlog', () => {
  it('leaves a REQ unanswered, and accepts its repetition when there is room', async () => {
    let room = 0;
    const taken = bench.listen(() => (room-- > 0 ? 'taken' : 'full'));
    const programs = [bench.connect(1), bench.connect(2)];
    await bench.deliver();
    expect([taken.length, bench.conversation]).toEqual([0, ['REQ >', 'REQ >']]);
    expect(droppedAt(1)).toEqual({ backlogFull: 2 });
    room = 1;
    await bench.elapse(answerPs);
    expect(taken).toHaveLength(1);
    room = 1;
    await bench.elapse(answerPs);
    expect(taken).toHaveLength(2);
    expect(programs.map(({ events }) => events)).toEqual([[], []]);
  });
});

describe('a peer that dies', () => {
  /** Brings both to a state; then node `dies` no longer sends or answers. */
  const deaths: readonly [CmState, number, string[]][] = [
    ['ReqSent', 1, ['unreachable']],
    ['RepSent', 0, ['unreachable']],
    ['Established', 1, ['replied', 'established', 'disconnected', 'timewait exit']],
    ['DreqSent', 1, ['replied', 'established', 'disconnected', 'timewait exit']],
    ['DreqRcvd', 0, ['established', 'disconnected', 'timewait exit']],
  ];

  it.each(deaths)('leaves its peer in %s, which ends by itself', async (state, dies, events) => {
    const silence = (): void => {
      bench.pass = ({ from }) => from !== dies;
    };
    const taken = bench.listen();
    const active = bench.connect();
    if (state === 'ReqSent') silence();
    await bench.deliver();
    if (state !== 'ReqSent') {
      taken[0]!.connection!.reply(bench.cpu, parameters(0x52));
      if (state === 'RepSent') silence();
      await bench.deliver();
    }
    if (state === 'Established' || state.startsWith('Dreq')) {
      active.connection!.readyToUse(bench.cpu);
      await bench.deliver();
    }
    if (state === 'Established') silence();
    if (state === 'DreqSent') bench.pass = ({ from }) => from !== dies;
    if (state !== 'ReqSent' && state !== 'RepSent') {
      active.connection!.disconnect(bench.cpu);
      await bench.deliver();
    }
    if (state === 'DreqRcvd') {
      silence();
      taken[0]!.connection!.disconnect(bench.cpu);
    }
    await bench.elapse(hourPs);
    const survivor = dies === 1 ? active : taken[0]!;
    expect(survivor.events).toEqual(events);
    expect(bench.managers[1 - dies]!.connectionCount).toBe(0);
  });

  it.each([
    ['REQ sent', 0, 4, ['rejected 4']],
    ['REQ received', 1, 28, ['rejected 28']],
    ['REP sent', 1, 28, ['replied', 'rejected 28']],
    ['REP received', 0, 28, ['rejected 28']],
  ] as const)('a program that ends with %s notifies the peer by REJ', async (state, dies, reason, events) => {
    const taken = bench.listen();
    const active = bench.connect();
    await bench.deliver();
    if (state.startsWith('REP')) taken[0]!.connection!.reply(bench.cpu, parameters(0x52));
    await bench.deliver();
    (dies === 0 ? active : taken[0]!).connection!.abandon(bench.cpu);
    await bench.deliver();
    expect(decodeCm(CmAttribute.REJ, bench.sent.at(-1)!.bytes).reason).toBe(reason);
    expect((dies === 0 ? taken[0]! : active).events).toEqual(events);
    expect(bench.managers.map((manager) => manager.connectionCount)).toEqual([0, 0]);
  });

  it('a program that ends with the connection established notifies the peer by one DREQ', async () => {
    const [active, passive] = await bench.established();
    active.connection!.abandon(bench.cpu);
    await bench.deliver();
    expect(passive.events).toEqual(['established', 'disconnected']);
    passive.connection!.disconnect(bench.cpu);
    await bench.elapse(hourPs);
    expect(bench.conversation).toEqual(conversationOfRping);
    expect(active.events).toEqual(['replied', 'established']);
    expect(bench.managers.map((manager) => manager.connectionCount)).toEqual([0, 0]);
  });
});

describe('10,000 connections', () => {
  it('are requested at once, used, ended, and leave nothing', async () => {
    const count = 10_000;
    const taken = bench.listen();
    const active = Array.from({ length: count }, (_, at) => bench.connect(at + 1));
    await bench.deliver();
    expect(taken).toHaveLength(count);
    for (const [at, { connection }] of taken.entries()) connection!.reply(bench.cpu, parameters(at + 1));
    await bench.deliver();
    for (const { connection } of active) connection!.readyToUse(bench.cpu);
    await bench.deliver();
    expect([...active, ...taken].every((program) => stateOf(program) === 'Established')).toBe(true);
    expect(new Set(active.map(({ connection }) => connection!.remoteQpn)).size).toBe(count);
    for (const { connection } of active) connection!.disconnect(bench.cpu);
    await bench.deliver();
    for (const { connection } of taken) connection!.disconnect(bench.cpu);
    await bench.elapse(hourPs);
    expect(bench.managers.map((manager) => manager.connectionCount)).toEqual([0, 0]);
    expect(bench.sent).toHaveLength(5 * count);
  });
});
