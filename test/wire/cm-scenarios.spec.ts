/**
 * Two simulated hosts connect by rdma_cm as two stock Linux machines did in the captures `cm-…` of `reference/wire`, with the
 * same parameters, operations and loss. The messages of communication management are compared with the captured ones field by
 * field, in order, and so are the data at each end. Numbers chosen by a machine are compared by their recurrences; other
 * differences are listed here, with reasons.
 */
import { describe, expect, it, vi } from 'vitest';
import { cmMessages, ipCmHeader, mad } from '../../abi/index.ts';
import { opcodeRow } from '../../wire/index.ts';
import { programOf, smallMachine } from '../machines.ts';
import type { LinuxConnection } from '../programs/linux-connection.ts';
import { capturedPackets, linuxMachines, packetsOf, type SentPacket, stepOf } from './linux-scenarios.ts';

vi.setConfig({ testTimeout: 60_000 });

type Scenario = Omit<LinuxConnection, 'address' | 'steps'> & { readonly steps: readonly string[] };

/**
 * Parameters of rdma_connect and rdma_accept in rping, ucmatose (rdma-core 44, librdmacm/examples) and wt (wt.c next to the
 * captures), and the actions of these programs.
 */
const one = { responderResources: 1, initiatorDepth: 1 };
const four = { responderResources: 4, initiatorDepth: 4, retryCount: 3, rnrRetryCount: 7 };
const ping = ['send:16', '<read:64', '<send:16', 'send:16', '<write:64', '<send:16'];
const sends = Array(5).fill('send:200').join('+');
const rping: Scenario = {
  port: 7174,
  isListening: true,
  connect: { ...one, retryCount: 7, rnrRetryCount: 7 },
  accept: { ...one, rnrRetryCount: 7 },
  endsAt: 0,
  steps: ping,
};
const wt: Scenario = {
  port: 7471,
  isListening: true,
  connect: four,
  accept: four,
  endsAt: 0,
  steps: ['send:100', 'write:3000:i', 'read:2000'],
};
const scenarios: Readonly<Record<string, Scenario>> = {
  'cm-drop-rep-ipv4.pcapng': rping,
  'cm-reject-ipv4.pcap': { ...rping, port: 9999, isListening: false },
  'cm-rping-ipv4.pcap': { ...rping, steps: [...ping, ...ping, ...ping] },
  'cm-ucmatose-ipv4.pcap': {
    port: 7471,
    isListening: true,
    connect: { ...one, retryCount: 5 },
    accept: { ...one, rnrRetryCount: 7 },
    endsAt: 1,
    steps: [sends, `<${sends}`],
  },
  'cm-wt-ipv4.pcap': wt,
  'cm-wt-ipv6.pcap': wt,
};

/** The relay dropped the first message of the passive side, its REP. */
const faults = { 'cm-drop-rep-ipv4.pcapng': [{ packet: 'lost', node: 1, opcode: 'UD_SEND_ONLY', nth: 1 }] };

async function played(name: string): Promise<SentPacket[]> {
  const { steps, ...more } = scenarios[name]!;
  const address = name.includes('ipv6') ? 'fe80::202:c9ff:fe00:11' : '10.0.0.2';
  const args = { ...more, address, steps: steps.map(stepOf) };
  const ends = [0, 1].map((node) => ({ node, direction: 'outbound' as const }));
  await using machine = await smallMachine({
    set: linuxMachines,
    faults: (faults as Readonly<Record<string, (typeof faults)[keyof typeof faults]>>)[name] ?? [],
    analysis: { capture: { ends, sizeBytes: 2 ** 24 } },
  });
  await machine.load(programOf('linux-connection', 'active', 0, { args }));
  await machine.load(programOf('linux-connection', 'passive', 1, { args }));
  await machine.run();
  return packetsOf((await machine.capture())!, (_, at) => at);
}

const managementQpn = 1;
const headerBytes = 24;
const ipHeaderBytes = 36;

/** A message of communication management; machine-chosen numbers are replaced by names. */
interface Message {
  readonly node: number;
  readonly name: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Numbers are named in order of occurrence: QP 0, QP 1. 0, which means none, is kept. */
class Names {
  readonly #known = new Map<string, string>();

  of(what: string, value: unknown): unknown {
    if (Number(value) === 0) return 0;
    const key = `${what} ${String(value)}`;
    const name = this.#known.get(key) ?? `${what} ${this.#known.size}`;
    this.#known.set(key, name);
    return name;
  }
}

/** Fields with machine-chosen numbers, and the meaning of the numbers. */
const chosen: Readonly<Record<string, string>> = {
  localCommId: 'ID',
  remoteCommId: 'ID',
  localQpn: 'QP',
  remoteQpn: 'QP',
  localCaGuid: 'adapter',
  transactionId: 'transaction',
  primaryLocalGid: 'GID',
  primaryRemoteGid: 'GID',
  sourceAddress: 'address',
  destinationAddress: 'address',
};

function messagesOf(packets: readonly SentPacket[]): Message[] {
  const names = [new Names(), new Names()];
  const nextPsns: (number | undefined)[] = [undefined, undefined];
  return packets
    .filter(({ packet }) => packet.bth.destinationQp === managementQpn)
    .map(({ node, packet }) => {
      const { payload, bth, headers, ipv4, ipv6 } = packet;
      const { attributeId, data: _data, ...head } = mad.decode(payload);
      const message = cmMessages[attributeId as 16];
      const { privateData, startingPsn: _psn, ...values } = message.decode(payload.subarray(headerBytes));
      const isRequest = message.name === 'REQ';
      const { sourcePort: _port, ...ip } = ipCmHeader.decode(privateData.slice(0, ipHeaderBytes));
      const fields = {
        ...head,
        ...values,
        ...(isRequest && ip),
        privateData: privateData.subarray(isRequest ? ipHeaderBytes : 0),
        deth: headers.DETH,
        partitionKey: bth.partitionKey,
        opcode: opcodeRow(bth.opcode)!.name,
        solicited: bth.solicitedEvent,
        // One more than in the previous message.
        isNextPsn: bth.psn === (nextPsns[node] ?? bth.psn),
        path:
          ipv4 === undefined
            ? [ipv6!.hopLimit, ipv6!.differentiatedServices, ipv6!.ecn]
            : [ipv4.timeToLive, ipv4.differentiatedServices, ipv4.ecn],
      };
      nextPsns[node] = (bth.psn + 1) & 0xff_ffff;
      // Both sides may choose the same number, so a number belongs to a side. A transaction belongs to the side of its request.
      const askerOf = { DREQ: node, DREP: 1 - node }[message.name] ?? 0;
      const sideOf = (field: string): number => (field.startsWith('remote') ? 1 - node : node);
      const named = Object.entries(fields).map(([field, value]) => {
        const what = chosen[field];
        const text = value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;
        const place = what === 'transaction' ? askerOf : what === 'ID' || what === 'QP' ? sideOf(field) : 0;
        return [field, what === undefined ? text : `${place} ${names[place]!.of(what, text as bigint)}`];
      });
      return { node, name: message.name, fields: Object.fromEntries(named) as Message['fields'] };
    });
}

/** Contents of a data packet, with PSNs counted from the first of its direction. */
function dataOf(packets: readonly SentPacket[], node: number): unknown[] {
  const own = packets.filter((sent) => sent.node === node && sent.packet.bth.destinationQp !== managementQpn);
  const isRequest = ({ packet }: SentPacket): boolean => opcodeRow(packet.bth.opcode)!.isRequest;
  return own.map((sent) => {
    const { bth, headers, payload } = sent.packet;
    const first = packets.find(
      (other) =>
        other.packet.bth.destinationQp !== managementQpn &&
        isRequest(other) &&
        (other.node === node) === isRequest(sent),
    );
    return {
      opcode: opcodeRow(bth.opcode)!.name,
      psn: (bth.psn - first!.packet.bth.psn) & 0xff_ffff,
      bits: [bth.ackRequest, bth.solicitedEvent, bth.padCount, bth.partitionKey],
      messageSequenceNumber: headers.AETH?.messageSequenceNumber,
      dmaLength: headers.RETH?.dmaLength,
      bytes: payload.length,
    };
  });
}

/** Requests and answers of an end, each separately: after which of its answers a machine sends its next request depends on its speed. */
const bothKinds = (data: readonly unknown[]): unknown[][] => {
  const isAnswer = (one: unknown): boolean => /ACKNOWLEDGE|RESPONSE/.test((one as { opcode: string }).opcode);
  return [data.filter((one) => !isAnswer(one)), data.filter(isAnswer)];
};

/** Differences in every REQ, with the origin of Linux' values. */
const differences: Readonly<Record<string, { readonly ours: unknown; readonly why: string }>> = {
  primaryFlowLabel: {
    ours: 0,
    why: 'any will do: Linux makes one of the ports (cma.c: cma_get_roce_udp_flow_label)',
  },
  primaryPacketRate: {
    ours: 3,
    why: '10 Gbit/s; Linux has 0, the rate of the port, for a network card that knows no rate',
  },
};

describe('two hosts that connect as two Linux machines did', () => {
  it.each(Object.keys(scenarios))(
    'IBTA 12.6: send the same messages with the same fields: %s',
    async (name) => {
      const captured = capturedPackets(name);
      const sent = await played(name);
      const [ours, linux] = [messagesOf(sent), messagesOf(captured)];
      const like = ({ node, name: what, fields }: Message) => ({
        ...{ node, what },
        fields: Object.entries(fields).filter(([field]) => differences[field] === undefined),
      });
      const isAskedAgain = ({ name: what }: Message, at: number): boolean => what === 'REQ' && at > 0;
      expect(ours.filter((message, at) => !isAskedAgain(message, at)).map(like)).toEqual(linux.map(like));
      // Linux' passive side leaves the packet life time out of its own wait (cm.c: cm_req_handler): its REP is repeated before
      // the REQ.
      expect(ours.filter(isAskedAgain)).toHaveLength(name === 'cm-drop-rep-ipv4.pcapng' ? 1 : 0);
      for (const [field, { ours: own, why }] of Object.entries(differences)) {
        expect([field, ours[0]!.fields[field]], why).toEqual([field, own]);
        expect([field, linux[0]!.fields[field]], why).not.toEqual([field, own]);
      }
      for (const node of [0, 1])
        expect(bothKinds(dataOf(sent, node))).toEqual(bothKinds(dataOf(captured, node)));
    },
  );

  it('cover all captures of rdma_cm except datagrams, which rdma_cm lacks here', () => {
    expect(Object.keys(scenarios)).toHaveLength(6);
  });
});
