/** Every error that a peer can cause, and the Terminate that names it (RFC 5040, 4.8; RFC 5041, 7; RFC 5044, 8). */
import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../../abi/cqe.ts';
import { EventType } from '../../../../abi/eqe.ts';
import { QpState } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { allRights, pattern, Region } from '../../testing/data-path-verbs.ts';
import {
  fpduOf,
  type Quoted,
  readSegment,
  taggedSegment,
  terminateOf,
  untaggedSegment,
} from '../testing/hostile-fpdus.ts';
import { completionsOf, iwarpScene, runJoined } from '../testing/iwarp-bench.ts';

type Scene = Awaited<ReturnType<typeof iwarpScene>>;
interface Attack {
  readonly name: string;
  readonly error: number;
  readonly quoted: Quoted;
  readonly event: number;
  segment(scene: Scene): Uint8Array | Promise<Uint8Array>;
}

const { WQ_ACCESS_ERROR, WQ_CATAS_ERROR, WQ_INVAL_REQ_ERROR } = EventType;
const ten = pattern(5, 10);
const withRights = async ({ bench }: Scene, rights: object, pd?: number): Promise<Region> => {
  const region = new Region(bench.b, 4096, {
    rights: { ...allRights, ...rights },
    ...(pd === undefined ? {} : { pd }),
  });
  await runJoined(bench, 3);
  return region;
};
const regionWith =
  (fields: object): ((scene: Scene) => Promise<Region>) =>
  async ({ bench }) => {
    const region = new Region(bench.b, 4096, { fields });
    await runJoined(bench, 3);
    return region;
  };

const attacks: readonly Attack[] = [
  {
    name: 'a WRITE to an STag that does not exist',
    ...{ error: 0x1100, quoted: 'header', event: WQ_ACCESS_ERROR },
    segment: ({ remote }) =>
      taggedSegment({ tag: remote.key + 0x1_0000, offset: remote.address, payload: ten }),
  },
  {
    name: 'a WRITE under another variant of a key',
    ...{ error: 0x1100, quoted: 'header', event: WQ_ACCESS_ERROR },
    segment: ({ remote }) => taggedSegment({ tag: remote.key + 1, offset: remote.address, payload: ten }),
  },
  {
    name: 'a WRITE beyond the end of a region',
    ...{ error: 0x1101, quoted: 'header', event: WQ_ACCESS_ERROR },
    segment: ({ remote }) =>
      taggedSegment({ tag: remote.key, offset: remote.address + remote.lengthBytes - 9, payload: ten }),
  },
  {
    name: 'a WRITE to a region of another protection domain',
    ...{ error: 0x1102, quoted: 'header', event: WQ_ACCESS_ERROR },
    segment: async (scene) => {
      const { key, address } = await withRights(scene, {}, 77);
      return taggedSegment({ tag: key, offset: address, payload: ten });
    },
  },
  {
    name: 'a WRITE whose offset wraps',
    ...{ error: 0x1103, quoted: 'header', event: WQ_ACCESS_ERROR },
    segment: ({ remote }) => taggedSegment({ tag: remote.key, offset: 2n ** 64n - 9n, payload: ten }),
  },
  {
    name: 'a tagged segment of another version of DDP',
    ...{ error: 0x1104, quoted: 'header', event: WQ_ACCESS_ERROR },
    segment: ({ remote }) =>
      taggedSegment({ ddp: 0xc0, tag: remote.key, offset: remote.address, payload: ten }),
  },
  {
    name: 'a WRITE to a region without remote write',
    ...{ error: 0x0102, quoted: 'header', event: WQ_ACCESS_ERROR },
    segment: async (scene) => {
      const { key, address } = await withRights(scene, { remoteWrite: false });
      return taggedSegment({ tag: key, offset: address, payload: ten });
    },
  },
  {
    name: 'a segment of queue 3',
    ...{ error: 0x1201, quoted: 'header', event: WQ_CATAS_ERROR },
    segment: () => untaggedSegment({ queue: 3 }),
  },
  {
    name: 'a SEND without a receive',
    ...{ error: 0x1202, quoted: 'header', event: WQ_CATAS_ERROR },
    segment: () => untaggedSegment({ payload: ten }),
  },
  {
    name: 'an MSN out of order',
    ...{ error: 0x1203, quoted: 'header', event: WQ_CATAS_ERROR },
    segment: () => untaggedSegment({ message: 2 }),
  },
  {
    name: 'a message offset that leaves bytes out',
    ...{ error: 0x1204, quoted: 'header', event: WQ_CATAS_ERROR },
    segment: () => untaggedSegment({ messageOffset: 4 }),
  },
  {
    name: 'a SEND that is longer than its receive',
    ...{ error: 0x1205, quoted: 'header', event: WQ_INVAL_REQ_ERROR },
    segment: ({ b, remote }) => {
      b.receive([remote.part(0, 9)]);
      return untaggedSegment({ payload: ten });
    },
  },
  {
    name: 'an untagged segment of another version of DDP',
    ...{ error: 0x1206, quoted: 'header', event: WQ_CATAS_ERROR },
    segment: () => untaggedSegment({ ddp: 0x42 }),
  },
  {
    name: 'a segment of another version of RDMAP',
    ...{ error: 0x0205, quoted: 'header', event: WQ_INVAL_REQ_ERROR },
    segment: () => untaggedSegment({ rdmap: 0x83 }),
  },
  {
    name: 'a tagged SEND',
    ...{ error: 0x0206, quoted: 'header', event: WQ_INVAL_REQ_ERROR },
    segment: ({ remote }) => taggedSegment({ rdmap: 0x43, tag: remote.key, offset: remote.address }),
  },
  {
    name: 'a READ response that nobody has asked for',
    ...{ error: 0x0206, quoted: 'header', event: WQ_INVAL_REQ_ERROR },
    segment: ({ remote }) =>
      taggedSegment({ rdmap: 0x42, tag: remote.key, offset: remote.address, payload: ten }),
  },
  {
    name: 'immediate data, which needs RFC 7306',
    ...{ error: 0x0206, quoted: 'header', event: WQ_INVAL_REQ_ERROR },
    segment: () => untaggedSegment({ rdmap: 0x48, payload: pattern(1, 8) }),
  },
  {
    name: 'an atomic, which needs RFC 7306',
    ...{ error: 0x0206, quoted: 'header', event: WQ_INVAL_REQ_ERROR },
    segment: () => untaggedSegment({ rdmap: 0x4a, queue: 1, payload: pattern(1, 52) }),
  },
  {
    name: 'a READ of an STag that does not exist',
    ...{ error: 0x0100, quoted: 'header and READ', event: WQ_ACCESS_ERROR },
    segment: ({ remote }) => readSegment(remote.key + 0x1_0000, remote.address, 10),
  },
  {
    name: 'a READ beyond the end of a region',
    ...{ error: 0x0101, quoted: 'header and READ', event: WQ_ACCESS_ERROR },
    segment: ({ remote }) => readSegment(remote.key, remote.address + 1, remote.lengthBytes),
  },
  {
    name: 'a READ of a region without remote read',
    ...{ error: 0x0102, quoted: 'header and READ', event: WQ_ACCESS_ERROR },
    segment: async (scene) => {
      const { key, address } = await withRights(scene, { remoteRead: false });
      return readSegment(key, address, 10);
    },
  },
  {
    name: 'a READ of a region of another protection domain',
    ...{ error: 0x0103, quoted: 'header and READ', event: WQ_ACCESS_ERROR },
    segment: async (scene) => {
      const { key, address } = await withRights(scene, {}, 77);
      return readSegment(key, address, 10);
    },
  },
  {
    name: 'a READ whose offset wraps',
    ...{ error: 0x0104, quoted: 'header and READ', event: WQ_ACCESS_ERROR },
    segment: ({ remote }) => readSegment(remote.key, 2n ** 64n - 9n, 10),
  },
  {
    name: 'a SEND that invalidates a key which a peer may not invalidate',
    ...{ error: 0x0109, quoted: 'header', event: WQ_ACCESS_ERROR },
    segment: async (scene) => {
      const { key } = await regionWith({ remoteInvalidateEnabled: 0 })(scene);
      scene.b.receive([scene.remote.part(0, 64)]);
      return untaggedSegment({ rdmap: 0x44, invalidated: key, payload: ten });
    },
  },
  {
    name: 'a READ request that is too short',
    ...{ error: 0x0207, quoted: 'header', event: WQ_CATAS_ERROR },
    segment: () => untaggedSegment({ rdmap: 0x41, queue: 1, payload: pattern(1, 27) }),
  },
  {
    name: 'a segment that is shorter than its header',
    ...{ error: 0x1000, quoted: 'nothing', event: WQ_CATAS_ERROR },
    segment: () => Uint8Array.of(0x41, 0x43, 0, 0, 0),
  },
];

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

describe('a card that receives', () => {
  it.each(attacks)(
    '$name sends its Terminate, FIN, events, and flushes',
    async ({ error, quoted, event, segment }) => {
      const scene = await iwarpScene();
      const { bench, a, b, bCq, connection, streams, remote } = scene;
      const before = remote.read();
      const bytes = await segment(scene);
      const own = b.post({ opcode: WqeOpcode.RDMA_WRITE, segments: [], remote: { address: 0, key: 0 } });
      streams.a.inject(connection, fpduOf(bytes));
      await runJoined(bench, 30);
      b.ring();
      const name = error.toString(16).padStart(4, '0');
      expect(streams.b.sent.map(hex)).toEqual([hex(fpduOf(terminateOf(error, quoted, bytes)))]);
      // Both have sent FIN.
      expect(streams.b.log).toEqual([`${connection} terminate sent 0x${name}`, `${connection} closed`]);
      expect(streams.a.log).toEqual([`${connection} terminate received 0x${name}`, `${connection} closed`]);
      expect([a.state, b.state]).toEqual([QpState.ERR, QpState.ERR]);
      const qpEvents = bench.b.events.lines.filter((line) => line.startsWith('qp'));
      expect(qpEvents).toEqual([`qp 0x${event.toString(16)} 0x${b.qpn.toString(16)}`]);
      const found = await completionsOf(bench, bCq, 1);
      expect(found.at(-1)).toMatchObject({
        isSend: true,
        wqeCounter: own,
        syndrome: CqeSyndrome.WR_FLUSH_ERR,
      });
      if (error !== 0x1205) expect(remote.read().slice(16)).toEqual(before.slice(16));
      expect(streams.a.openCount + streams.b.openCount).toBe(0);
    },
  );

  it('more READs than IRD, has no buffer for the last one', async () => {
    const { bench, b, connection, streams, remote } = await iwarpScene({ reads: 2 });
    const reads = [1, 2, 3].map((message) => readSegment(remote.key, remote.address, 16, message));
    streams.a.inject(connection, Buffer.concat(reads.map((segment) => fpduOf(segment))));
    await runJoined(bench, 30);
    expect(hex(streams.b.sent.at(-1)!)).toBe(hex(fpduOf(terminateOf(0x1202, 'header', reads[2]!))));
    expect(b.state).toBe(QpState.ERR);
  });

  it('a wrong CRC, names it and quotes nothing', async () => {
    const { bench, b, connection, streams } = await iwarpScene();
    streams.a.inject(connection, fpduOf(untaggedSegment({}), 1));
    await runJoined(bench, 30);
    expect(streams.b.sent.map(hex)).toEqual([
      hex(fpduOf(terminateOf(0x2002, 'nothing', untaggedSegment({})))),
    ]);
    expect(b.state).toBe(QpState.ERR);
  });

  it('a FIN in the middle of an FPDU, reports a lost connection', async () => {
    const { bench, b, connection, streams } = await iwarpScene();
    streams.a.inject(connection, fpduOf(untaggedSegment({ payload: ten })).subarray(0, 20));
    streams.a.close(connection);
    await runJoined(bench, 30);
    expect(streams.b.log[0]).toBe(`${connection} terminate sent 0x2001`);
    expect(b.state).toBe(QpState.ERR);
  });

  it('a Terminate, closes and sends none', async () => {
    const { bench, a, b, connection, streams } = await iwarpScene();
    streams.a.inject(connection, fpduOf(terminateOf(0x0102, 'nothing', untaggedSegment({}))));
    await runJoined(bench, 30);
    expect(streams.b.log[0]).toBe(`${connection} terminate received 0x0102`);
    expect(streams.b.sent).toEqual([]);
    expect(b.state).toBe(QpState.ERR);
    expect(streams.b.connection(connection).isFinDue).toBe(true);
    expect(a.state).toBe(QpState.RTS);
  });

  it('a WRITE though its QP allows none, names the rights', async () => {
    const { bench, b, connection, streams, remote } = await iwarpScene(
      {},
      { b: { fields: { remoteWriteEnabled: 0 } } },
    );
    streams.a.inject(
      connection,
      fpduOf(taggedSegment({ tag: remote.key, offset: remote.address, payload: ten })),
    );
    await runJoined(bench, 30);
    expect(streams.b.log[0]).toBe(`${connection} terminate sent 0x0102`);
    expect(b.state).toBe(QpState.ERR);
  });

  it('a READ whose sink its own side may not write from afar, fails it', async () => {
    const { bench, a, aCq, connection, streams, remote } = await iwarpScene();
    const sink = new Region(bench.a, 4096, { rights: { ...allRights, remoteWrite: false } });
    await runJoined(bench, 3);
    a.send({
      opcode: WqeOpcode.RDMA_READ,
      segments: [sink.part(0, 100)],
      remote: { ...remote, address: remote.address },
    });
    expect(await completionsOf(bench, aCq, 1)).toMatchObject([{ syndrome: CqeSyndrome.LOCAL_PROT_ERR }]);
    await runJoined(bench, 10);
    expect(streams.a.log[0]).toBe(`${connection} terminate sent 0x0102`);
    expect(a.state).toBe(QpState.ERR);
  });
});
