/** Dropped messages of services without acknowledgements (UD, UC): the receiver’s device counts them, the sender is not notified. */
import type { DropEvidence, QpEvidence } from '../../machine/evidence/index.ts';
import { accessExplained, qpRightMissing } from './access.ts';
import { counted, type Explanation, hex, qpName } from './cause.ts';
import { damagerOf, type Scene, stateAt } from './scene.ts';

/** Opcodes of UD packets: their upper bits are 011 (IBTA vol 1, table 38). */
const isDatagram = ({ opcode }: DropEvidence): boolean => opcode >>> 5 === 3;
const isUnreliableConnection = ({ opcode }: DropEvidence): boolean => opcode >>> 5 === 1;

/** IBTA vol 1, 10.5.1: multicast packets name this QP. */
const toGroup = ({ destinationQpn }: DropEvidence): boolean => destinationQpn === 0xff_ffff;

/** The host of a datagram's sender: one at the other end of a cable, if it has such a QP. */
const senderNode = (scene: Scene, node: number, { sourceQpn }: DropEvidence): number =>
  scene.peers(node).find((peer) => scene.qp(peer, sourceQpn) !== undefined) ?? node;

const senderText = (scene: Scene, node: number, drop: DropEvidence): string =>
  drop.sourceQpn < 0 ? '' : ` of ${qpName(senderNode(scene, node, drop), drop.sourceQpn)}`;

/** Datagrams to these QPs, or to QPs that do not exist, that a host's device dropped. */
export function datagramsLost(
  scene: Scene,
  node: number,
  qps: readonly QpEvidence[],
): Explanation | undefined {
  const isOfThese = ({ destinationQpn }: DropEvidence): boolean =>
    qps.some(({ qpn }) => qpn === destinationQpn);
  const datagramQps = qps.filter(({ service }) => service === 'UD');
  const find = (reason: string, isMeant: (drop: DropEvidence) => boolean): DropEvidence | undefined =>
    scene.drops(node, [reason], (drop) => isDatagram(drop) && isMeant(drop));
  const senderLine = (drop: DropEvidence): string | undefined =>
    scene.host(senderNode(scene, node, drop))?.posts.find((post) => post.qpn === drop.sourceQpn)?.line;
  const lost = (drop: DropEvidence): string =>
    `${counted(drop.count, 'datagram')}${senderText(scene, node, drop)}`;
  const queueKey = find('datagramQkey', isOfThese);
  if (queueKey !== undefined)
    return {
      cause: 'ud-qkey',
      sentence: `The device of host ${node} dropped ${lost(queueKey)} to QP ${hex(queueKey.destinationQpn)}: they carry ${queueKey.found}, the QP has ${queueKey.heldTo} (datagramQkey)`,
      evidence: { datagramQkey: queueKey.count, found: queueKey.found, heldTo: queueKey.heldTo },
      mendLine: senderLine(queueKey),
      advice:
        'Set wr.ud.remote_qkey to the qkey that the receiving QP was given at INIT; with bit 31 set the sender’s own Q_Key is used.',
    };
  const partition = find('datagramPkey', isOfThese);
  if (partition !== undefined)
    return {
      cause: 'ud-pkey',
      sentence: `The device of host ${node} dropped ${lost(partition)} to QP ${hex(partition.destinationQpn)}: they carry ${partition.found}, the QP has ${partition.heldTo} (datagramPkey)`,
      evidence: { datagramPkey: partition.count, found: partition.found, heldTo: partition.heldTo },
      mendLine: senderLine(partition),
      advice: 'Use pkey_index of the same partition at both ends.',
    };
  const noReceive = find('noReceive', isOfThese);
  if (noReceive !== undefined) {
    const qp = qps.find(({ qpn }) => qpn === noReceive.destinationQpn)!;
    const posted = scene.receivesPosted(node, qp);
    return {
      cause: 'ud-no-receive',
      sentence: `The device of host ${node} dropped ${lost(noReceive)} to QP ${hex(noReceive.destinationQpn)}, which had no receive posted (${posted} in all)`,
      evidence: { dropped: noReceive.count, receivesPosted: posted },
      mendLine: scene.receiveLine(node, qp),
      advice: 'Post receives before datagrams come, and enough of them: UD has no flow control.',
    };
  }
  const state = find('packetQpState', isOfThese);
  if (state !== undefined)
    return {
      cause: 'ud-qp-state',
      sentence: `The device of host ${node} dropped ${lost(state)} to QP ${hex(state.destinationQpn)}, which was in ${state.found} (packetQpState)`,
      evidence: { packetQpState: state.count, state: state.found },
      mendLine: scene.lines(node, 'QP', state.destinationQpn)?.toInit,
      advice: 'Bring the QP to RTR before datagrams are sent to it.',
    };
  const group = find('packetOpcode', toGroup) ?? find('packetUnknownQp', toGroup);
  if (group !== undefined && datagramQps.length > 0)
    return {
      cause: 'ud-group-not-attached',
      sentence: `The device of host ${node} dropped ${lost(group)} to a multicast group (QP 0xffffff): no QP of host ${node} is attached to it (${group.reason})`,
      evidence: { dropped: group.count },
      mendLine: senderLine(group),
      advice:
        'Join the group (rdma_join_multicast, or the subnet administration) and call ibv_attach_mcast with its GID and LID.',
    };
  const foreign = datagramQps.length === 0 ? find('packetOpcode', isOfThese) : undefined;
  if (foreign !== undefined) {
    const qp = qps.find(({ qpn }) => qpn === foreign.destinationQpn)!;
    return {
      cause: 'ud-wrong-service',
      sentence: `The device of host ${node} dropped ${lost(foreign)} to QP ${hex(qp.qpn)}, which is ${qp.service} (packetOpcode)`,
      evidence: { packetOpcode: foreign.count, service: qp.service },
      mendLine: senderLine(foreign),
      advice: 'Create QPs of the same service at both ends.',
    };
  }
  if (datagramQps.length === 0) return undefined;
  const unknown = find('packetUnknownQp', () => true);
  if (unknown !== undefined)
    return {
      cause: 'ud-qpn',
      sentence: `The device of host ${node} dropped ${lost(unknown)} to QP ${hex(unknown.destinationQpn)}, which does not exist (packetUnknownQp); the UD QP that waits is ${hex(datagramQps[0]!.qpn)}`,
      evidence: { packetUnknownQp: unknown.count, remoteQpn: unknown.destinationQpn },
      mendLine: senderLine(unknown),
      advice: `Set wr.ud.remote_qpn to ${hex(datagramQps[0]!.qpn)}.`,
    };
  const service = find('packetOpcode', () => true);
  if (service !== undefined)
    return {
      cause: 'ud-wrong-service',
      sentence: `The device of host ${node} dropped ${lost(service)} to QP ${hex(service.destinationQpn)}, which is no UD QP (packetOpcode)`,
      evidence: { packetOpcode: service.count },
      mendLine: senderLine(service),
      advice: `Set wr.ud.remote_qpn to that of the UD QP, ${hex(datagramQps[0]!.qpn)}.`,
    };
  const address =
    find('packetForeignLid', () => true) ??
    find('packetForeignGid', () => true) ??
    scene.drops(node, ['foreignMac']);
  if (address !== undefined)
    return {
      cause: address.reason === 'packetForeignLid' ? 'ud-wrong-lid' : 'ud-wrong-gid',
      sentence: `The device of host ${node} dropped ${lost(address)}: they are for ${address.found}, it has ${address.heldTo} (${address.reason})`,
      evidence: { [address.reason]: address.count, found: address.found, heldTo: address.heldTo },
      mendLine: senderLine(address),
      advice: 'Create the address handle with the LID (dlid) or GID (grh.dgid) of the receiver’s port.',
    };
  return tooLong(scene, node, datagramQps) ?? elsewhere(scene, node, datagramQps);
}

/** The datagrams were longer than a packet of either port: a frame beyond the MTU never becomes one. */
function tooLong(scene: Scene, node: number, qps: readonly QpEvidence[]): Explanation | undefined {
  const { port } = scene.device(node)!;
  const limit = Math.min(port.mtuBytes, scene.farDevice(node)?.port.mtuBytes ?? port.mtuBytes);
  const far = scene.farHost(node);
  const posts = (far?.posts ?? []).filter(
    ({ remoteQpn, bytes }) => qps.some(({ qpn }) => qpn === remoteQpn) && bytes > limit,
  );
  const [post] = posts;
  if (far === undefined || post === undefined) return undefined;
  return {
    cause: 'ud-too-long',
    sentence: `${counted(posts.length, 'datagram')} of ${qpName(far.node, post.qpn)} had ${post.bytes} bytes, the ports carry ${limit}: a datagram is one packet`,
    evidence: { bytes: post.bytes, portMtu: limit, datagrams: posts.length },
    mendLine: post.line,
    advice: 'Send at most active_mtu bytes in a datagram (ibv_query_port).',
  };
}

/** The datagrams arrived at another QP. */
function elsewhere(scene: Scene, node: number, qps: readonly QpEvidence[]): Explanation | undefined {
  const far = scene.farHost(node);
  const posts = (far?.posts ?? []).filter(
    ({ remoteQpn }) => remoteQpn !== undefined && !qps.some(({ qpn }) => qpn === remoteQpn),
  );
  const [post] = posts;
  if (far === undefined || post === undefined || qps.some(({ received }) => received > 0)) return undefined;
  return {
    cause: 'ud-qpn',
    sentence: `${counted(posts.length, 'datagram')} of ${qpName(far.node, post.qpn)} went to QP ${hex(post.remoteQpn!)}; the QP of host ${node} that waits is ${hex(qps[0]!.qpn)}`,
    evidence: { remoteQpn: post.remoteQpn!, datagrams: posts.length },
    mendLine: post.line,
    advice: `Set wr.ud.remote_qpn to ${hex(qps[0]!.qpn)}.`,
  };
}

/** Finds lost messages of unreliable connections. */
export function servicesLost(
  scene: Scene,
  node: number,
  qps: readonly QpEvidence[],
): Explanation | undefined {
  const drops = (scene.device(node)?.drops ?? []).filter(isUnreliableConnection);
  const ours = drops.find(({ destinationQpn }) => qps.some(({ qpn }) => qpn === destinationQpn));
  const [connection] = qps.filter(({ service }) => service === 'UC');
  const drop = ours ?? (connection === undefined ? undefined : drops[0]);
  if (drop === undefined) return undefined;
  const qp = qps.find(({ qpn }) => qpn === drop.destinationQpn) ?? connection!;
  const causes: Readonly<Record<string, readonly [cause: string, advice: string]>> = {
    noReceive: ['uc-no-receive', 'Post receives before messages come: UC has no RNR NAK.'],
    packetUnknownQp: ['uc-qpn', `Set dest_qp_num to ${hex(qp.qpn)}.`],
    packetQpState: ['uc-qp-state', 'Bring the QP to RTR before messages are sent to it.'],
    packetPkey: ['uc-pkey', 'Use pkey_index of the same partition at both ends.'],
    packetOpcode: ['uc-wrong-service', 'Connect QPs of the same service.'],
    packetForeignLid: ['uc-wrong-lid', 'Set ah_attr.dlid to the LID of the peer’s port.'],
    packetForeignGid: [
      'uc-wrong-gid',
      'Set ah_attr.grh.dgid to the GID of the peer’s port, of one RoCE version at both ends.',
    ],
    foreignMac: [
      'uc-wrong-gid',
      'Set ah_attr.grh.dgid to the GID of the peer’s port: its MAC follows from it.',
    ],
    vlanFilter: ['uc-wrong-vlan', 'Use GIDs of the same VLAN at both ends.'],
  };
  // A QP in INIT has no path yet, which the device compares first.
  const state = stateAt(qp, drop.firstPs);
  const isUnready = ours !== undefined && (state === 'RESET' || state === 'INIT');
  const [cause, advice] = causes[isUnready ? 'packetQpState' : drop.reason] ?? [
    'uc-dropped',
    'Compare both ends of the connection.',
  ];
  const sender = scene.intended(node, qp);
  return {
    cause,
    sentence: `The device of host ${node} dropped ${counted(drop.count, 'packet')} of an unreliable connection to QP ${hex(drop.destinationQpn)} without an answer: ${isUnready ? `the QP was in ${state}` : `found ${drop.found}, held to ${drop.heldTo}`} (${drop.reason})`,
    evidence: { [drop.reason]: drop.count, found: drop.found, heldTo: drop.heldTo },
    mendLine: sender && scene.lines(sender.node, 'QP', sender.of.qpn)?.toRtr,
    advice,
  };
}

/** Messages of several packets over a path with another MTU: the responder drops the first packet and all after it. */
export function unequalMtu(scene: Scene, node: number, qps: readonly QpEvidence[]): Explanation | undefined {
  for (const qp of qps.filter(({ service }) => service === 'UC')) {
    const sender = scene.intended(node, qp);
    const least = Math.min(qp.mtuBytes, sender?.of.mtuBytes ?? qp.mtuBytes);
    const post = scene
      .host(sender?.node ?? -1)
      ?.posts.find((one) => one.qpn === sender?.of.qpn && one.bytes > least);
    if (sender === undefined || sender.of.mtuBytes === qp.mtuBytes || post === undefined) continue;
    return {
      cause: 'mtu-mismatch',
      sentence: `${qpName(sender.node, sender.of.qpn)} has a path MTU of ${sender.of.mtuBytes} bytes, ${qpName(node, qp.qpn)} has ${qp.mtuBytes}: its ${post.operation} of ${post.bytes} bytes was dropped without an answer`,
      evidence: { mtu: sender.of.mtuBytes, peerMtu: qp.mtuBytes, bytes: post.bytes },
      mendLine: scene.lines(sender.node, 'QP', sender.of.qpn)?.toRtr,
      advice: 'Set the same path_mtu at both ends: the lesser of both active_mtu.',
    };
  }
  return undefined;
}

/** The cable lost a message: no service without acknowledgements retransmits. */
export function lostOnTheWay(
  scene: Scene,
  node: number,
  qps: readonly QpEvidence[],
): Explanation | undefined {
  const qp = qps.find(({ service, received }) => (service === 'UC' || service === 'UD') && received === 0);
  const [fault] = scene.packetFaults;
  if (qp === undefined || fault === undefined) return undefined;
  return {
    cause: 'packets-lost',
    sentence: `${damagerOf(fault).did} packets for ${qpName(node, qp.qpn)}: the injected fault ${fault.fault} fired ${counted(fault.fired, 'time')}, and ${qp.service} sends nothing again`,
    evidence: { fired: fault.fired, received: qp.received },
    advice: 'Acknowledge messages in the program and send again after a time, or use RC.',
  };
}

/** A right or a key forbids a WRITE to one of these QPs of unreliable connections: the device drops it without notice to the sender. */
export function refusedInSilence(
  scene: Scene,
  node: number,
  qps: readonly QpEvidence[],
): Explanation | undefined {
  const isOfThese = ({ qpn }: { readonly qpn: number }): boolean =>
    qps.some((qp) => qp.service === 'UC' && qp.qpn === qpn);
  const refusal = scene.device(node)?.refusals.findLast(isOfThese);
  if (refusal === undefined) return undefined;
  const { qpn, atPs } = refusal;
  const what = `A WRITE to ${qpName(node, qpn)}, which a UC QP drops without an answer,`;
  if (refusal.check === 'qpRight') return qpRightMissing(scene, node, refusal, what);
  const access = scene.device(node)?.accesses.findLast((one) => one.qpn === qpn && one.atPs <= atPs);
  const askingNode = scene.farNode(node) ?? node;
  return access && accessExplained({ scene, node, access, what, askingNode, side: 'remote' });
}
