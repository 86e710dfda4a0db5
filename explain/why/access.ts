/**
 * Explains why a device may not access memory: the key is unknown, deregistered, of another domain, too short or
 * without the right, or a page was refused.
 */
import type {
  AccessEvidence,
  BufferEvidence,
  RefusalEvidence,
  RegionEvidence,
} from '../../machine/evidence/index.ts';
import {
  answerBadKey,
  answerBadPd,
  answerMissingRight,
  answerOutOfBounds,
} from '../../machine/timeline/index.ts';
import { durationText, type Explanation, hex, qpName } from './cause.ts';
import type { Scene } from './scene.ts';

export interface RefusedAccess {
  readonly scene: Scene;
  /** Host that owns the memory. */
  readonly node: number;
  readonly access: AccessEvidence;
  /** The request in words: "The WRITE of QP 0x41 of host 0". */
  readonly what: string;
  /** Host whose program named the key: the requester's for an rkey, the owner of the memory for an lkey. */
  readonly askingNode: number;
  /** `remote` for an rkey, `local` for the lkey of a send, `receive` for that of a receive. */
  readonly side: 'remote' | 'local' | 'receive';
  /** Buffers of a `local` request: the device accesses them in pieces, and refused one of them. */
  readonly buffers?: readonly BufferEvidence[];
}

const rightNames = ['local read', 'local write', 'remote read', 'remote write', 'remote atomic'];
const accessFlags = [
  '',
  'IBV_ACCESS_LOCAL_WRITE',
  'IBV_ACCESS_REMOTE_READ',
  'IBV_ACCESS_REMOTE_WRITE',
  'IBV_ACCESS_REMOTE_ATOMIC',
];
const namesOf = (bits: number, names: readonly string[]): string =>
  names.filter((name, bit) => name !== '' && ((bits >> bit) & 1) === 1).join(', ') || 'none';

const keyIndex = (key: number): number => key >>> 8;

export function accessExplained(refused: RefusedAccess): Explanation {
  const { access } = refused;
  switch (access.answer) {
    case answerBadKey:
      return badKey(refused);
    case answerBadPd:
      return wrongDomain(refused);
    case answerOutOfBounds:
      return isUnbound(refused) ? badKey(refused) : outOfBounds(refused);
    case answerMissingRight:
      return missingRight(refused);
    default:
      return {
        cause: `${refused.side}-page-refused`,
        sentence: `${refused.what} needs the page of address ${hex(access.address)} under key ${hex(access.key)}, which the kernel of host ${refused.node} does not have or the device could not read`,
        evidence: { key: access.key, address: access.address },
        advice:
          'The memory under the key is not mapped any more: keep it mapped until the last request has completed.',
      };
  }
}

/** A window that was never bound has no memory. */
const isUnbound = (refused: RefusedAccess): boolean =>
  regionOf(refused)?.isRegion === false && refused.access.heldTo === refused.access.heldToEnd;

const keyName = ({ side }: RefusedAccess): string => (side === 'remote' ? 'rkey' : 'lkey');

function badKey(refused: RefusedAccess): Explanation {
  const { scene, node, access, what, side, askingNode } = refused;
  const { key } = access;
  // The program that posted a receive named its key, on a line of its own.
  const receives = side === 'receive' ? scene.host(node)?.receives : undefined;
  const common = {
    evidence: { key },
    mendLine: receives?.find(({ qpn }) => qpn === access.qpn)?.line,
  };
  const known = scene.regions(node, (region) => region.key === key).at(-1);
  const lines = scene.lines(node, 'MR', key);
  if (known?.destroyedPs !== undefined && known.destroyedPs <= access.atPs)
    return {
      ...common,
      cause: `${side}-key-deregistered`,
      sentence: `${what} uses ${keyName(refused)} ${hex(key)}, whose region host ${node} deregistered at ${durationText(known.destroyedPs)}`,
      evidence: { key, deregisteredPs: known.destroyedPs },
      mendLine: lines?.destroyed,
      advice: 'Deregister memory only after all requests that use its key, of both sides, have completed.',
    };
  const bound = scene
    .host(node)
    ?.posts.findLast(
      ({ bindKey, atPs }) =>
        bindKey !== undefined &&
        keyIndex(bindKey) === keyIndex(key) &&
        bindKey !== key &&
        atPs <= access.atPs,
    );
  if (known?.isRegion === false && bound?.bindKey !== undefined)
    return {
      ...common,
      cause: `${side}-key-stale`,
      sentence: `${what} uses ${keyName(refused)} ${hex(key)} of a window; the window there has key ${hex(bound.bindKey)} since its bind at ${durationText(bound.atPs)}`,
      evidence: { key, regionKey: bound.bindKey },
      mendLine: bound.line,
      advice: 'Each bind gives a window another key: send mw->rkey over after ibv_bind_mw.',
    };
  if (known !== undefined)
    return {
      ...common,
      cause: `${side}-key-invalid`,
      sentence: `${what} uses key ${hex(key)}, which is allocated and not valid now: ${known.isRegion ? 'it was invalidated, or not yet registered by a work request' : 'the window is not bound'}`,
      advice:
        'Bind the window, or register the region, before the key is used, and only once it has completed.',
    };
  const stale = scene.regions(node, (region) => keyIndex(region.key) === keyIndex(key)).at(-1);
  const foreign = scene.devices.find(
    (device) => device.node !== node && scene.regions(device.node, (region) => region.key === key).length > 0,
  );
  if (foreign !== undefined)
    return {
      ...common,
      cause: side === 'remote' ? 'own-key-as-rkey' : `${side}-key-foreign`,
      sentence: `${what} uses ${keyName(refused)} ${hex(key)}, which is a key of host ${foreign.node}, not of host ${node}`,
      advice:
        side === 'remote'
          ? 'Send the peer’s rkey over: an own lkey or rkey names no memory of the peer.'
          : 'Use the lkey of a region of this host.',
    };
  if (stale !== undefined)
    return {
      ...common,
      cause: `${side}-key-stale`,
      sentence: `${what} uses ${keyName(refused)} ${hex(key)}; the region there has key ${hex(stale.key)}${stale.destroyedPs === undefined || stale.destroyedPs > access.atPs ? '' : ' and was deregistered'}`,
      evidence: { key, regionKey: stale.key },
      advice:
        'Use the key that ibv_reg_mr returned last; a key of an earlier registration is not valid any more.',
    };
  return {
    ...common,
    cause: `${side}-key-unknown`,
    sentence: `${what} uses ${keyName(refused)} ${hex(key)}, which no region of host ${node} ever had`,
    advice: `Use the ${keyName(refused)} of ibv_reg_mr${askingNode === node ? '' : ', sent over by the peer, in the byte order that it was sent in'}.`,
  };
}

/** The region that a refused key names. */
const regionOf = ({ scene, node, access }: RefusedAccess): RegionEvidence | undefined =>
  scene.regions(node, ({ key }) => key === access.key).at(-1);

function wrongDomain(refused: RefusedAccess): Explanation {
  const { scene, node, access, what, side } = refused;
  if (scene.host(node) !== undefined && scene.lines(node, 'MR', access.key) === undefined)
    return {
      cause: `${side}-key-unknown`,
      sentence: `${what} uses ${keyName(refused)} ${hex(access.key)}, which no region of a program of host ${node} ever had: it is the driver’s own`,
      evidence: { key: access.key },
      advice: `Use the ${keyName(refused)} of ibv_reg_mr: ${hex(access.key)} looks like a field that was left as it was.`,
    };
  return {
    cause: `${side}-wrong-pd`,
    sentence: `${what} uses key ${hex(access.key)} of protection domain ${hex(access.heldTo)}, the QP of host ${node} belongs to ${hex(access.found)}`,
    evidence: { key: access.key, qpPd: access.found, regionPd: access.heldTo },
    mendLine: scene.lines(node, 'MR', access.key)?.created,
    advice: 'Register the memory and create the QP (and its SRQ) in one protection domain.',
  };
}

function outOfBounds(refused: RefusedAccess): Explanation {
  const { scene, node, access, what, side } = refused;
  const { heldTo, heldToEnd } = access;
  const end = access.address + access.bytes;
  const { address, bytes } =
    refused.buffers?.find((one) => access.address >= one.address && end <= one.address + one.bytes) ?? access;
  // A receive is also written in pieces: the first pieces filled the region, and the refused one begins at its end.
  const isContinued = side === 'receive' && address === heldToEnd;
  const beyond = address + bytes - heldToEnd;
  const before = heldTo - address;
  const isStart = !isContinued && (address >= heldToEnd || address + bytes <= heldTo);
  const where = isStart
    ? `lies outside of the region [${hex(heldTo)}, ${hex(heldToEnd)})`
    : beyond > 0
      ? `reaches ${isContinued ? 'at least ' : ''}${beyond} ${beyond === 1 ? 'byte' : 'bytes'} beyond the region [${hex(heldTo)}, ${hex(heldToEnd)})`
      : `begins ${before} bytes before the region [${hex(heldTo)}, ${hex(heldToEnd)})`;
  return {
    cause: isStart ? `${side}-wrong-address` : `${side}-too-short`,
    sentence: `${what}, ${bytes} ${bytes === 1 ? 'byte' : 'bytes'} at ${hex(address)}, ${where} of ${heldToEnd - heldTo} bytes that host ${node} registered under key ${hex(access.key)}`,
    evidence: {
      key: access.key,
      address,
      bytes,
      regionBytes: heldToEnd - heldTo,
      beyondBytes: Math.max(0, beyond),
    },
    mendLine: scene.lines(node, 'MR', access.key)?.created,
    advice: isStart
      ? 'Check the address: it is a virtual address of the process that registered the memory.'
      : 'Register as much as requests use, or make the request shorter.',
  };
}

function missingRight(refused: RefusedAccess): Explanation {
  const { scene, node, access, what, side } = refused;
  const missing = access.found & ~access.heldTo;
  const registered = regionOf(refused)?.rights ?? access.heldTo;
  const isChanged = (registered & missing) !== 0;
  const given = isChanged ? access.heldTo : registered;
  return {
    cause: `${side}-right-missing`,
    sentence: `${what} needs ${namesOf(missing, rightNames)} on key ${hex(access.key)}; host ${node} ${isChanged ? 'changed its rights (ibv_rereg_mr or a bind) to' : 'registered it with'} ${namesOf(given, rightNames)}`,
    evidence: { key: access.key, missing: namesOf(missing, accessFlags), given: namesOf(given, accessFlags) },
    mendLine: scene.lines(node, 'MR', access.key)?.created,
    advice: `Add ${namesOf(missing, accessFlags)} to the access flags of ibv_reg_mr.`,
  };
}

const qpRights = ['remote read', 'remote write', 'remote atomic'];
const qpFlags = ['IBV_ACCESS_REMOTE_READ', 'IBV_ACCESS_REMOTE_WRITE', 'IBV_ACCESS_REMOTE_ATOMIC'];

/**
 * qp_access_flags of a host's QP forbid the request.
 * @param what name of the request, as the subject of a sentence
 */
export function qpRightMissing(
  scene: Scene,
  node: number,
  { qpn, found, heldTo }: RefusalEvidence,
  what: string,
): Explanation {
  const missing = namesOf(found & ~heldTo, qpFlags);
  return {
    cause: 'qp-right-missing',
    sentence: `${what} needs ${namesOf(found, qpRights)}; ${qpName(node, qpn)} allows its peer ${namesOf(heldTo, qpRights)}`,
    evidence: { missing, given: namesOf(heldTo, qpFlags) },
    mendLine: scene.lines(node, 'QP', qpn)?.toInit,
    advice: `Add ${missing} to qp_access_flags when the QP goes to INIT${/READ|ATOMIC/.test(missing) ? ', and give max_dest_rd_atomic: with 0 the driver takes the rights of READ and atomics away' : ''}.`,
  };
}
