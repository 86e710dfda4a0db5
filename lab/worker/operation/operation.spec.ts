/** The lab's picture of one operation: the instants of its report and of the bus, each with its bytes. */
import { describe, expect, it } from 'vitest';
import { layoutOfPicture } from '../../page/diagram-layout.ts';
import type { OperationPicture, PictureRecord, ScenarioName } from '../../protocol.ts';
import { latency } from '../what-if.ts';
import { busEvents } from './bus-text.ts';
import { operation } from './picture.ts';

const machine = { profile: 'connectx3-qdr', set: {}, seed: 1 };

const picture = (scenario: ScenarioName, isWarm = false, sizeBytes = 4096): Promise<OperationPicture> =>
  operation({ machine, scenario, sizeBytes, mtuBytes: 0, isWarm });

const milestone = ({ milestones }: OperationPicture, pattern: RegExp): number | undefined =>
  milestones.find(({ text }) => pattern.test(text))?.atPs;

const fieldsOf = ({ decoded }: OperationPicture, record: PictureRecord): readonly string[] =>
  record.decoded.flatMap((at) => decoded[at]!.sections.flatMap(({ fields }) => fields));

const valueIn = ({ values }: PictureRecord, name: string): string | number | undefined =>
  values.find(([each]) => each === name)?.[1];

describe('one WRITE of 4 KiB with warm caches', async () => {
  const shown = await picture('write', true);
  const of = (process: string, kind: string, trafficClass?: string): PictureRecord[] =>
    shown.records.filter(
      (record) =>
        record.kind === kind &&
        shown.tracks[record.track]!.process === process &&
        (trafficClass === undefined || valueIn(record, 'trafficClass') === trafficClass),
    );

  it('has its CQE at the sender before the last bytes take effect at the receiver', () => {
    expect(shown.cqePs).toBeLessThan(shown.lastBytesPs!);
    expect(milestone(shown, /program has taken/)).toBe(shown.latencyPs);
  });

  it('is tiled by its stages', () => {
    let atPs = 0;
    for (const { fromPs, toPs } of shown.stages) {
      expect(fromPs).toBe(atPs);
      atPs = toPs;
    }
    expect(atPs).toBe(shown.latencyPs);
  });

  it('writes 4,096 bytes into the memory of host 1 in TLPs of the maximum payload, one after another', () => {
    const writes = of('host1', 'tlp', 'payloadWrite');
    expect(writes.map((record) => valueIn(record, 'lengthBytes'))).toEqual(Array(16).fill(256));
    const inMemory = writes.map(({ inMemoryPs }) => inMemoryPs!);
    expect(inMemory).toEqual(inMemory.toSorted((left, right) => left - right));
    for (const { arrivesPs, inMemoryPs } of writes) expect(inMemoryPs).toBeGreaterThanOrEqual(arrivesPs!);
  });

  it('decodes WQE, packet headers and CQE by their layouts', () => {
    const [wqe] = of('hca0', 'tlp', 'wqeRead');
    expect(fieldsOf(shown, wqe!)).toEqual(
      expect.arrayContaining(['opcode=RDMA_WRITE (8)', 'byteCount=0x1000', 'completion=3']),
    );
    const [request] = of('hca1', 'packet');
    expect(fieldsOf(shown, request!)).toEqual(
      expect.arrayContaining([
        'dmaLength=0x1000',
        'ackRequest=1',
        `psn=0x${Number(valueIn(request!, 'psn')).toString(16)}`,
      ]),
    );
    const [cqe] = of('host0', 'tlp', 'cqe');
    expect(fieldsOf(shown, cqe!)).toEqual(expect.arrayContaining(['isSend=1', 'wqeCounter=3']));
  });

  it('misses fewer caches than the first of its kind', async () => {
    const cold = await picture('write');
    expect(cold.misses).toBeGreaterThan(shown.misses);
    expect(cold.latencyPs).toBeGreaterThan(shown.latencyPs);
    const contexts = cold.records.filter((record) => valueIn(record, 'trafficClass') === 'context');
    expect(contexts.flatMap((record) => fieldsOf(cold, record)).join()).toContain('serviceType=');

    // The memory translation entry names the page that the payload is read from.
    const ofClass = (name: string): PictureRecord[] =>
      cold.records.filter((record) => valueIn(record, 'trafficClass') === name);
    const read = ofClass('payloadRead').find(({ track }) => cold.tracks[track]!.process === 'host0')!;
    const page = Number(valueIn(read, 'address')) & ~0xfff;
    const translations = ofClass('translation').flatMap((record) => fieldsOf(cold, record));
    expect(translations.join(' ')).toMatch(
      new RegExp(`(\\[0x[0-9a-f]+\\])\\.pageAddress=0x${page.toString(16)} \\1\\.present=1`),
    );
    expect(translations.join()).toContain('lengthBytes=0x1000');
  });
});

describe('shows faults', () => {
  it.each([
    ['rnr', 'SUCCESS', /RNR NAK.* arrived at host 0/],
    ['lost', 'SUCCESS', /lost on the cable/],
    ['wrong-key', 'REM_ACCESS_ERR', /\(NAK\) has arrived at host 0/],
    ['page-fault', 'SUCCESS', /PAGE_REQUEST/],
    ['events', 'SUCCESS', /core of host 0 begins to handle an interrupt/],
  ] as const)('%s ends with %s', async (scenario, status, seen) => {
    const shown = await picture(scenario, false, 64);
    expect(shown.status).toBe(status);
    expect(milestone(shown, seen)).toBeGreaterThan(0);
    expect(shown.isBalanced).toBe(true);
  });
});

describe('on a cable of Ethernet', () => {
  const roce = { ...machine, set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' } };
  const onEthernet = (scenario: ScenarioName): Promise<OperationPicture> =>
    operation({ machine: roce, scenario, sizeBytes: 64, mtuBytes: 0, isWarm: true });

  it('a WRITE has the headers of its frame, and is tiled by its stages', async () => {
    const shown = await onEthernet('write');
    const request = shown.records.find(
      ({ kind, track }) => kind === 'packet' && shown.tracks[track]!.process === 'hca1',
    )!;
    const titles = request.decoded.flatMap((at) => shown.decoded[at]!.sections.map(({ title }) => title));
    expect(titles).toEqual(['Ethernet', 'IPv4', 'UDP', 'BTH', 'RETH', 'payload']);
    // 10.0.0.2 and 4791.
    expect(fieldsOf(shown, request)).toEqual(
      expect.arrayContaining(['destination=0xa000002', 'destinationPort=0x12b7', 'dmaLength=0x40']),
    );
    expect(shown.stages.at(-1)!.toPs).toBe(shown.latencyPs);
    expect([shown.status, shown.isBalanced]).toEqual(['SUCCESS', true]);
  });

  it.each([
    ['lost', /WRITE_ONLY.* never arrives: lost on the cable/],
    ['lost', /WRITE_ONLY.* again: sent again/],
    ['rnr', /RNR NAK.* arrived at host 0/],
  ] as const)('%s shows what was %s', async (scenario, seen) => {
    const shown = await onEthernet(scenario);
    expect(shown.status).toBe('SUCCESS');
    expect(milestone(shown, seen)).toBeGreaterThan(0);
  });
});

describe('over iWARP', () => {
  const overIwarp = (scenario: ScenarioName, sizeBytes = 64, isWarm = true): Promise<OperationPicture> =>
    operation({ machine, scenario, network: 'iwarp', sizeBytes, mtuBytes: 0, isWarm });
  const framesTo = ({ records, tracks }: OperationPicture, process: string): PictureRecord[] =>
    records.filter(({ kind, track }) => kind === 'frame' && tracks[track]!.process === process);

  it('RFC 5040, 5.5: a WRITE completes when TCP has it, before its last bytes are in memory', async () => {
    const shown = await overIwarp('write', 4096);
    expect(shown.cqePs).toBeLessThan(milestone(shown, /last packet of host 0 has arrived/)!);
    expect(shown.lastBytesPs).toBeGreaterThan(milestone(shown, /last packet of host 0 has arrived/)!);
    expect(shown.stages.at(-1)!.toPs).toBe(shown.latencyPs);
    // An MSS of 1460: FPDUs of 2 + 14 + 1440 + 4 bytes, twice, and the rest.
    expect(framesTo(shown, 'hca1').map(({ label }) => label.replace(/ at .*/, ''))).toEqual([
      ...['WRITE, 1440 bytes', 'WRITE, 1440 bytes', 'WRITE, 1216 bytes'],
    ]);
    const titles = framesTo(shown, 'hca1')[0]!.decoded.flatMap((at) =>
      shown.decoded[at]!.sections.map(({ title }) => title),
    );
    expect(titles).toEqual(['Ethernet', 'IPv4', 'TCP', 'iWARP', 'payload']);
    expect([shown.status, shown.isBalanced]).toEqual(['SUCCESS', true]);
  });

  it('its TCP engine works, and is drawn among the blocks', async () => {
    const shown = await overIwarp('write');
    const { cells, titles } = layoutOfPicture(shown, true);
    const blocks = [
      ['hca0', 'tcpEngine'],
      ['hca0', 'tcpTransmitter'],
      ['hca1', 'tcpEngine'],
    ] as const;
    for (const [process, name] of blocks) {
      const track = shown.tracks.findIndex((each) => each.process === process && each.name === name);
      const work = shown.records.filter((record) => record.track === track && record.kind === 'blockBusy');
      expect([name, work.length > 0]).toEqual([name, true]);
      const cell = cells.find((each) => each.process === process && each.name === name)!;
      expect(cell.y).toBeLessThan(titles.find(({ text }) => text === 'Control')!.y);
    }
  });

  it('RFC 5040, 4.8: a wrong STag is answered by a Terminate; the WRITE has completed before', async () => {
    const shown = await overIwarp('wrong-key');
    expect(shown.status).toBe('SUCCESS');
    const terminatePs = milestone(shown, /TERMINATE.*STag not valid.* has arrived at host 0/)!;
    expect(terminatePs).toBeGreaterThan(shown.cqePs!);
  });

  it('a READ ends with the bytes in memory, a SEND has a CQE at its receiver', async () => {
    const read = await overIwarp('read', 4096);
    expect(read.cqePs).toBeGreaterThan(read.lastBytesPs!);
    expect(milestone(await overIwarp('send'), /receiver’s CQE/)).toBeGreaterThan(0);
  });

  it('refuses a scenario that shows nothing', async () => {
    await expect(overIwarp('lost')).rejects.toThrow(/operation.*lost/);
  });
});

it('the first operation of a QP has a CQE', async () => {
  const cold = await picture('write', false, 64);
  expect(cold.cqePs).toBeLessThan(cold.latencyPs);
});

describe('the other verbs', () => {
  it.each([
    ['read', 'READ', 'payloadWrite'],
    ['fetch-add', 'FETCH_ADD', 'payloadWrite'],
    ['blueflame', 'WRITE', 'cqe'],
  ] as const)('%s', async (scenario, name, trafficClass) => {
    const shown = await picture(scenario, true, 64);
    expect(shown.operation).toBe(name);
    const written = shown.records.filter(
      (record) =>
        shown.tracks[record.track]!.process === 'host0' && valueIn(record, 'trafficClass') === trafficClass,
    );
    expect(written.length).toBeGreaterThan(0);
    for (const record of written) expect(record.inMemoryPs).toBeDefined();
    expect(shown.records.some(({ kind }) => kind === 'blueFlame')).toBe(scenario !== 'fetch-add');
  });
});

it('a READ takes as long as in a latency test, except for the poll that sees it', async () => {
  const message = { verb: 'read', sizeBytes: 64, mtuBytes: 0, inlineBytes: 0 } as const;
  const { meanPs } = await latency(machine, message);
  const { latencyPs } = await picture('read', true, 64);
  // The last poll of either may see the CQE up to one poll late, 80 ns at most.
  expect(Math.abs(latencyPs - meanPs)).toBeLessThanOrEqual(160_000);
});

it('a section that fills several lines of the log is one section', () => {
  const text = [
    '    4163599.000 ns  host0  dma        WQE of QP 0x208, 0x1b: ATOMIC_CS, 64 bytes',
    '    control        opcode=ATOMIC_CS (0x11) qpn=0',
    '                   completion=3',
    '    data           byteCount=8',
    '',
  ].join('\n');
  expect(busEvents([text])).toEqual([
    {
      node: 0,
      atPs: 4_163_599_000,
      category: 'dma',
      summary: 'WQE of QP 0x208, 0x1b: ATOMIC_CS, 64 bytes',
      sections: [
        { title: 'control', fields: ['opcode=ATOMIC_CS (0x11)', 'qpn=0', 'completion=3'] },
        { title: 'data', fields: ['byteCount=8'] },
      ],
    },
  ]);
});
