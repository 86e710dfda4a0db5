/** Connections of iWARP as the kernel makes them: commands, MPA's bytes, events of rdma_cm. Expected bytes are written from the RFCs. */
import { beforeEach, describe, expect, it } from 'vitest';
import { CommandStatus } from '../../abi/command-status.ts';
import { qpMailbox } from '../../abi/index.ts';
import { iwarpContext, TcpEvent } from '../../abi/tcp-connection.ts';
import { fromHex, toHex } from '../../base/bytes.ts';
import type { Device } from '../device.ts';
import { ethernetPortOf } from '../ethernet-port.ts';
import { RdmaCmEventType as Event, noParameters, RdmaPortSpace } from '../rdma-cm.ts';
import { IwarpBench } from '../testing-iwarp.ts';
import { QpAttrMask, QpStateVerb, QpTypeVerb } from '../uapi.ts';
import { IwarpConnector } from './iwarp-connector.ts';
import type { Path } from './path.ts';
import { serviceIdOf } from './service-id.ts';

const text = (words: string): string => toHex(Uint8Array.from(words, (letter) => letter.charCodeAt(0)));
/** RFC 5044, 7.1.1, and RFC 6581, 9: key, flags (C, S), revision 2, length, the enhanced word, private data. */
const frame = (key: 'Req' | 'Rep', flags: string, words: string, data = ''): string => {
  const length = (words.length + data.length) / 2;
  return `${text(`MPA ID ${key} Frame`)}${flags}02${length.toString(16).padStart(4, '0')}${words}${data}`;
};
const own = { ...noParameters, responderResources: 1, initiatorDepth: 1 };
/** Offset of iWARP's part in the mailbox of a transition: 8 bytes, then QPC 44. */
const iwarpAt = 8 + 0x44;

let bench: IwarpBench;
beforeEach(async () => {
  bench = await IwarpBench.open();
});

describe('a listener', () => {
  it('listens at any address, and hands a request to the program with the initiator’s depth as its resources', async () => {
    const { channel } = bench;
    const { cpu } = bench.opened.machine;
    const id = await channel.createId(cpu, RdmaPortSpace.RDMA_PS_TCP);
    await channel.bindAddr(cpu, id, { sinAddr: '0.0.0.0', sinPort: 7 });
    await channel.listen(cpu, id, 4);
    await new Promise((resolve) => setImmediate(resolve));
    expect(bench.opening).toMatchObject({ localPort: 7, remotePort: 0, localAddress: new Uint8Array(16) });
    expect(bench.opened.machine.last('OPEN_TCP').opcodeModifier).toBe(1);
    await bench.accept();
    // IRD 4, ORD 3, peer-to-peer by WRITE: A and C, as perftest over siw asks in reference/wire.
    await bench.deliver(fromHex(frame('Req', '50', '80048003', 'aabb')));
    const request = await bench.expectEvent(Event.RDMA_CM_EVENT_CONNECT_REQUEST);
    expect(request.conn).toMatchObject({ responderResources: 3, initiatorDepth: 4 });
    expect(toHex(request.conn!.privateData)).toBe('aabb');
    const addresses = await channel.queryAddresses(cpu, request.id);
    expect(addresses.dst).toEqual({ sinAddr: '10.0.0.2', sinPort: 0x9000 });
    const { qpn, handle } = await bench.qp();
    await channel.accept(cpu, request.id, { ...own, qpNum: qpn, responderResources: 2, initiatorDepth: 9 });
    const established = await bench.expectEvent(Event.RDMA_CM_EVENT_ESTABLISHED);
    expect(established.id).toBe(request.id);
    // The initiator's first FPDU may arrive while the stream is becoming the QP's.
    await bench.notify(TcpEvent.READABLE);
    expect(bench.opened.driver.connectionCounts()?.dropped.unexpected).toBe(0);
    // RFC 6581, 9: the responder's ORD is at most the initiator's IRD; the kind of the message is the common one.
    expect(bench.sent.map(({ bytes }) => toHex(bytes))).toEqual([frame('Rep', '50', '80028004')]);
    const context = iwarpContext.decode(bench.opened.machine.last('RTR2RTS_QP').input, iwarpAt);
    expect(context).toEqual({
      connection: bench.sent[0]!.connection,
      isInitiator: 0,
      sendsMarkers: 0,
      receivesMarkers: 0,
      hasCrc: 1,
      rtr: 2,
      inboundReads: 2,
      outboundReads: 4,
    });
    const { context: verbs } = bench.opened;
    await expect(
      verbs.modifyQp(cpu, handle, { qpState: QpStateVerb.IBV_QPS_RTS }, QpAttrMask.IBV_QP_STATE),
    ).resolves.toBeUndefined();
    await bench.notify(TcpEvent.PEER_CLOSED);
    await bench.expectEvent(Event.RDMA_CM_EVENT_DISCONNECTED);
    await bench.notify(TcpEvent.CLOSED);
    const { connection } = bench.sent[0]!;
    expect(bench.closed).toEqual([`${connection} by 0: 0`, `${connection} by 2: 0`]);
  });

  it('Linux 6.1, iwcm.c (iw_cm_listen): listens when rdma_listen returns, and returns the card’s error', async () => {
    const { channel } = bench;
    const { cpu, commands } = bench.opened.machine;
    const id = await channel.createId(cpu, RdmaPortSpace.RDMA_PS_TCP);
    await channel.bindAddr(cpu, id, { sinAddr: '0.0.0.0', sinPort: 7 });
    bench.openStatus = CommandStatus.EXCEED_LIM;
    await expect(channel.listen(cpu, id, 4)).rejects.toMatchObject({ code: 'ENOMEM' });
    bench.openStatus = 0;
    await channel.listen(cpu, id, 4);
    expect(commands.at(-1)).toMatchObject({ name: 'OPEN_TCP', opcodeModifier: 1 });
    const other = await channel.createId(cpu, RdmaPortSpace.RDMA_PS_TCP);
    await channel.bindAddr(cpu, other, { sinAddr: '0.0.0.0', sinPort: 8 });
    await channel.listen(cpu, other, 4);
    expect(bench.opening).toMatchObject({ localPort: 8 });
  });

  it('RFC 5044, 7.1.2: counts what an initiator sends before it has the reply, and leaves it to the QP', async () => {
    const { channel } = bench;
    const { cpu } = bench.opened.machine;
    const id = await channel.createId(cpu, RdmaPortSpace.RDMA_PS_TCP);
    await channel.bindAddr(cpu, id, { sinAddr: '0.0.0.0', sinPort: 7 });
    await channel.listen(cpu, id, 4);
    await bench.accept();
    await bench.deliver(fromHex(frame('Req', '50', '80048003')));
    const receives = (): number =>
      bench.opened.machine.names().filter((name) => name === 'RECEIVE_TCP').length;
    const before = receives();
    await bench.deliver(Uint8Array.of(1, 2, 3));
    expect(bench.opened.driver.connectionCounts()?.dropped.unexpected).toBe(1);
    expect(receives()).toBe(before);
  });

  it('rejects with the program’s data, and closes in order', async () => {
    const { channel } = bench;
    const { cpu } = bench.opened.machine;
    const id = await channel.createId(cpu, RdmaPortSpace.RDMA_PS_TCP);
    await channel.bindAddr(cpu, id, { sinAddr: '0.0.0.0', sinPort: 7 });
    await channel.listen(cpu, id, 4);
    await new Promise((resolve) => setImmediate(resolve));
    const connection = await bench.accept();
    await bench.deliver(fromHex(frame('Req', '50', '00010001')));
    const request = await bench.expectEvent(Event.RDMA_CM_EVENT_CONNECT_REQUEST);
    await channel.reject(cpu, request.id, Uint8Array.of(5, 6));
    await new Promise((resolve) => setImmediate(resolve));
    // R beside C and S.
    expect(bench.sent.map(({ bytes }) => toHex(bytes))).toEqual([frame('Rep', '70', '00000000', '0506')]);
    expect(bench.closed).toEqual([`${connection} by 0: 0`]);
  });

  it('RFC 5044, 7.1.2: resets a peer that sends something else', async () => {
    const { channel } = bench;
    const { cpu } = bench.opened.machine;
    const id = await channel.createId(cpu, RdmaPortSpace.RDMA_PS_TCP);
    await channel.bindAddr(cpu, id, { sinAddr: '0.0.0.0', sinPort: 7 });
    await channel.listen(cpu, id, 4);
    await new Promise((resolve) => setImmediate(resolve));
    const connection = await bench.accept();
    await bench.deliver(fromHex(text('GET / HTTP/1.1\r\n')));
    expect(bench.closed).toEqual([`${connection} by 1: 0`]);
    expect(await bench.events()).toEqual([]);
  });
});

describe('rdma_accept', () => {
  it('refuses more READs than the card has (Linux 6.1, cxgb4’s cm.c: EINVAL), and can be called again', async () => {
    const { channel } = bench;
    const { cpu } = bench.opened.machine;
    const id = await channel.createId(cpu, RdmaPortSpace.RDMA_PS_TCP);
    await channel.bindAddr(cpu, id, { sinAddr: '0.0.0.0', sinPort: 7 });
    await channel.listen(cpu, id, 4);
    await new Promise((resolve) => setImmediate(resolve));
    await bench.accept();
    await bench.deliver(fromHex(frame('Req', '50', '80048003')));
    const { id: requested } = await bench.expectEvent(Event.RDMA_CM_EVENT_CONNECT_REQUEST);
    const { qpn } = await bench.qp();
    // QUERY_DEV_CAP of the captured card offers 16 of each: see resources.spec.ts.
    for (const many of [{ responderResources: 17 }, { initiatorDepth: 17 }])
      await expect(channel.accept(cpu, requested, { ...own, ...many, qpNum: qpn })).rejects.toThrow(
        'is 17, expected 0 to 16',
      );
    expect(bench.sent).toEqual([]);
    await channel.accept(cpu, requested, { ...own, qpNum: qpn });
    await bench.expectEvent(Event.RDMA_CM_EVENT_ESTABLISHED);
  });
});

describe('an initiator', () => {
  const mac = fromHex('0002c9654321');
  const gid = fromHex('00000000000000000000ffff0a000002');
  const path: Path = {
    local: { lid: 0, gid },
    remote: { lid: 0, gid },
    ...{ serviceLevel: 0, mtu: 3, rate: 7, packetLifeTime: 18 },
    roce: { sgidIndex: 0, hopLimit: 64, mac },
  };
  const addresses = {
    src: { sinAddr: '10.0.0.1', sinPort: 0x8000 },
    dst: { sinAddr: '10.0.0.2', sinPort: 7 },
  };
  const none = { ...noParameters, privateData: new Uint8Array() };

  /** Kernel timers, of which the last one replaces those before. */
  const timers: { readonly atPs: number; readonly due: () => void }[] = [];
  const timeOut = async (): Promise<void> => {
    const { atPs, due } = timers.pop()!;
    bench.opened.machine.time = atPs;
    due();
    await new Promise((resolve) => setImmediate(resolve));
  };

  /** A connection that asks for port 7 with a QP, and the words of its owner. */
  async function asking(qpn: number): Promise<string[]> {
    const { driver, machine } = bench.opened;
    const { device } = driver;
    const port = ethernetPortOf(device.ports[0])!;
    const startTimer = (delayPs: number, due: () => void): void => {
      timers.push({ atPs: machine.time + delayPs, due });
    };
    const timed: Device = Object.create(device, { platform: { value: { ...device.platform, startTimer } } });
    const setup = { device: timed, port, qps: device.iwarpQps!, listeners: new Map() };
    const connection = new IwarpConnector(setup).newConnection(path);
    const told: string[] = [];
    connection.owner = {
      replied: () => void told.push('replied'),
      established: (_cpu, conn) =>
        void told.push(`established ${conn!.responderResources} ${conn!.initiatorDepth}`),
      rejected: (_cpu, reason, data) => void told.push(`rejected ${reason} ${toHex(data)}`),
      unreachable: () => void told.push('unreachable'),
      failed: (_cpu, errno) => void told.push(`failed ${errno}`),
      disconnected: () => void told.push('disconnected'),
      timewaitEnded: () => void told.push('time wait'),
    };
    connection.connect(machine.cpu, serviceIdOf(7), addresses, { ...none, ...own, qpn });
    await new Promise((resolve) => setImmediate(resolve));
    return told;
  }

  it('opens TCP to the neighbour’s MAC, asks by MPA, and has its QP in RTS before its program is told', async () => {
    const { qpn, handle } = await bench.qp();
    const told = await asking(qpn);
    expect(bench.opening).toMatchObject({
      remoteMac: mac,
      remoteAddress: gid,
      localPort: 0x8000,
      remotePort: 7,
      isIpv6: 0,
      // RFC 9293, 3.7.1: the MTU less 20 bytes each of IP and TCP.
      maxSegmentBytes: 1460,
    });
    await bench.notify(TcpEvent.ESTABLISHED);
    // A, B, C, D: peer-to-peer by any kind; IRD 1, ORD 1.
    expect(bench.sent.map(({ bytes }) => toHex(bytes))).toEqual([frame('Req', '50', 'c001c001')]);
    expect(told).toEqual([]);
    const reply = frame('Rep', '50', '80018001');
    await bench.deliver(fromHex(reply.slice(0, 30)));
    expect(told).toEqual([]);
    await bench.deliver(fromHex(reply.slice(30)));
    expect(told).toEqual(['established 1 1']);
    const context = iwarpContext.decode(bench.opened.machine.last('INIT2RTR_QP').input, iwarpAt);
    expect(context).toMatchObject({ isInitiator: 1, rtr: 2, hasCrc: 1 });
    const attributes = await bench.opened.context.queryQp(bench.opened.machine.cpu, handle);
    expect(attributes).toBeDefined();
    await bench.notify(TcpEvent.RESET);
    expect(told.at(-1)).toBe('disconnected');
  });

  it.each(['INIT2RTR_QP', 'RTR2RTS_QP'] as const)(
    'gives its QP the rights that rdma_create_qp does not (Linux 6.1, cxgb4’s qp.c, rdma_init): %s',
    async (command) => {
      await asking((await bench.qp()).qpn);
      await bench.notify(TcpEvent.ESTABLISHED);
      await bench.deliver(fromHex(frame('Rep', '50', '80018001')));
      const { context } = qpMailbox.decode(bench.opened.machine.last(command).input);
      expect(context).toMatchObject({ remoteReadEnabled: 1, remoteWriteEnabled: 1, remoteAtomicEnabled: 1 });
    },
  );

  it.each([
    // Linux 6.1, cma.c: a refused or reset connection is rejected, one that times out unreachable.
    ['RST to its SYN', TcpEvent.RESET, 'rejected -111 '],
    ['no answer to its SYN', TcpEvent.TIMED_OUT, 'unreachable'],
  ])('tells of %s', async (_what, event, words) => {
    const told = await asking((await bench.qp()).qpn);
    await bench.notify(event);
    expect(told).toEqual([words]);
    expect(bench.closed.at(-1)).toMatch(/ by 2: 0$/);
  });

  it.each([
    ['rejects, with data', frame('Rep', '70', '00000000', '0708'), 'rejected -111 0708', 0],
    ['sends a request of its own', frame('Req', '50', '00010001'), 'rejected -71 ', 1],
    ['answers by another revision', frame('Rep', '50', '').replace('5002', '4001'), 'rejected -71 ', 1],
  ])('tells of a peer that %s', async (_what, bytes, words, form) => {
    const told = await asking((await bench.qp()).qpn);
    await bench.notify(TcpEvent.ESTABLISHED);
    await bench.deliver(fromHex(bytes));
    expect(told).toEqual([words]);
    expect(bench.closed.at(-1)).toMatch(new RegExp(` by ${form}: 0$`));
  });

  it('sends its request again later when the card has no memory for it, and fails with ENOMEM after a second', async () => {
    const told = await asking((await bench.qp()).qpn);
    bench.sendStatuses = [CommandStatus.EXCEED_LIM, CommandStatus.EXCEED_LIM];
    await bench.notify(TcpEvent.ESTABLISHED);
    await timeOut();
    expect(bench.sent).toEqual([]);
    await timeOut();
    expect(bench.sent.map(({ bytes }) => toHex(bytes))).toEqual([frame('Req', '50', 'c001c001')]);
    await bench.deliver(fromHex(frame('Rep', '50', '80018001')));
    expect(told).toEqual(['established 1 1']);

    const failing = await asking((await bench.qp()).qpn);
    const startPs = bench.opened.machine.time;
    bench.sendStatuses = Array.from({ length: 2000 }, () => CommandStatus.EXCEED_LIM);
    await bench.notify(TcpEvent.ESTABLISHED);
    while (failing.length === 0) await timeOut();
    // ENOMEM is 12 (errno-base.h).
    expect(failing).toEqual(['failed 12']);
    expect(bench.opened.machine.time - startPs).toBe(1e12);
    expect(bench.closed.at(-1)).toMatch(/ by 1: 0$/);
  });

  it('RFC 6581, 8: sends a Terminate with code 7 when no ready-to-receive message is common', async () => {
    const told = await asking((await bench.qp()).qpn);
    await bench.notify(TcpEvent.ESTABLISHED);
    await bench.deliver(fromHex(frame('Rep', '50', '80010001')));
    expect(told).toEqual(['failed 104']);
    // Layer 2, type 0, code 7.
    expect(bench.closed.at(-1)).toMatch(new RegExp(` by 3: ${0x2007}$`));
  });
});

describe('a device with iWARP', () => {
  it('maps all its contexts of connections at probe, and says how many it wants', async () => {
    const { driver } = bench.opened;
    expect(driver.device.profile.counts.auxc).toBe(4096);
    expect(driver.transport).toBe(1);
  });

  it.each([
    ['a QP of datagrams', QpTypeVerb.IBV_QPT_UD],
    ['an unreliable connection', QpTypeVerb.IBV_QPT_UC],
  ])('refuses %s with EOPNOTSUPP', async (_what, type) => {
    await expect(bench.opened.createQp({ type })).rejects.toMatchObject({ code: 'EOPNOTSUPP' });
  });

  it('refuses to take a QP to RTR without a connection', async () => {
    const { handle } = await bench.qp();
    const { context, machine } = bench.opened;
    const attr = { qpState: QpStateVerb.IBV_QPS_RTR };
    await expect(context.modifyQp(machine.cpu, handle, attr, QpAttrMask.IBV_QP_STATE)).rejects.toMatchObject({
      code: 'EINVAL',
    });
  });
});
