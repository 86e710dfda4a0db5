/**
 * Rules that no program of simulated hosts can reach: their peer is a third-party endpoint, their path is a guest
 * kernel's, or a device breaks the protocol. Each test changes one record in the evidence of a run, as such a mistake
 * would.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../abi/index.ts';
import type {
  DeviceEvidence,
  DropEvidence,
  ErrorEvidence,
  Evidence,
  QpEvidence,
  RefusalEvidence,
  StreamEvidence,
} from '../../machine/evidence/index.ts';
import { Machine } from '../../machine/index.ts';
import type { Cause } from './cause.ts';
import { diagnosedGuests, diagnosedRun } from './index.ts';
import { Scene } from './scene.ts';
import { stalledStream } from './streams.ts';
import { furtherMistakes } from './testing/further-mistakes.ts';
import { iwarpMistakes } from './testing/iwarp-mistakes.ts';
import { mistakes } from './testing/mistakes.ts';

const roceSet = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' };

/** The devices' evidence of a mistake of the catalogue; guests' devices have no more. */
async function devicesOf(name: string, set: Readonly<Record<string, string>> = {}): Promise<Evidence> {
  const mistake = [...mistakes, ...furtherMistakes, ...iwarpMistakes].find((one) => one.name === name)!;
  const { host0, host1, faults } = mistake;
  await using machine = await Machine.create({
    set: { ...set, ...mistake.set },
    ...(faults === undefined ? {} : { faults }),
    analysis: { evidence: {} },
  });
  await machine.load({ node: 0, name: 'host0', run: host0 });
  await machine.load({ node: 1, name: 'host1', run: host1 });
  await diagnosedRun(machine);
  return { ...(await machine.evidence()), hosts: [] };
}

type Changed = { -readonly [Key in keyof DeviceEvidence]: DeviceEvidence[Key] };

/** The causes after a change of the records of both devices. */
function causesAfter(
  evidence: Evidence,
  change: (near: Changed, far: Changed) => void,
  isAlone = false,
): readonly Cause[] {
  const { devices, topology } = structuredClone(evidence);
  change(devices[0]! as Changed, devices[1]! as Changed);
  return diagnosedGuests({ devices: isAlone ? devices.slice(0, 1) : devices, hosts: [], topology });
}

const faultsOf = (causes: readonly Cause[]): string[] =>
  causes.filter(({ weight }) => weight === 'fault').map(({ cause }) => cause);

/** The connection of the program, that is, the last one created. */
const connection = ({ qps }: DeviceEvidence): QpEvidence & { path: { vlan?: number; mac?: string } } =>
  qps.findLast(({ service }) => service === 'RC' || service === 'UC')! as never;

const withError = (device: Changed, syndrome: number): void => {
  const { qpn, sendCqn } = connection(device);
  const error: ErrorEvidence = {
    ...{ qpn, wqeCounter: 0, syndrome, isSend: true, cqn: sendCqn, atPs: device.atPs, vendor: 0 },
  };
  device.errors = [error];
};

const refusalOf = (device: Changed, check: string): RefusalEvidence => ({
  ...{ qpn: connection(device).qpn, check, opcode: 4, psn: 0, found: 64, heldTo: 0, requesterQpn: 0 },
  atPs: device.atPs,
});

const dropOf = (device: Changed, reason: string): DropEvidence => ({
  ...{ reason, destinationQpn: connection(device).qpn, sourceQpn: -1, opcode: 10, psn: 0, bytes: 64 },
  ...{ found: '', heldTo: '', firstPs: device.atPs, lastPs: device.atPs, count: 3 },
});

describe('a rule alone', () => {
  let lost: Evidence;
  let unanswered: Evidence;
  let refused: Evidence;
  let unreliable: Evidence;
  beforeAll(async () => {
    lost = await devicesOf('timeout is 0, and a packet is lost');
    unanswered = await devicesOf('no receive is posted', roceSet);
    refused = await devicesOf('the rkey is of nobody');
    unreliable = await devicesOf('a message of UC without a receive', roceSet);
    for (const { errors } of unanswered.devices) (errors as ErrorEvidence[]).length = 0;
  }, 120_000);

  it('names the VLAN that the peer does not accept', () => {
    const causes = causesAfter(unanswered, (near, far) => {
      connection(near).path.vlan = 7;
      connection(far).path.vlan = 8;
      far.drops = [dropOf(far, 'vlanFilter')];
      withError(near, CqeSyndrome.TRANSPORT_RETRY_EXC_ERR);
    });
    expect(faultsOf(causes)).toEqual(['wrong-vlan']);
    expect(causes[0]!.sentence).toMatch(/sends with VLAN 7, its peer expects VLAN 8/);
    expect(causes[0]!.evidence).toMatchObject({ vlan: 7, vlanFilter: 3 });
  });

  it('names the MAC that no port has', () => {
    const causes = causesAfter(unanswered, (near, far) => {
      connection(near).path.mac = '02:00:00:00:00:99';
      far.drops = [dropOf(far, 'foreignMac')];
      withError(near, CqeSyndrome.TRANSPORT_RETRY_EXC_ERR);
    });
    expect(faultsOf(causes)).toEqual(['wrong-mac']);
    expect(causes[0]!.sentence).toMatch(/sends to MAC 02:00:00:00:00:99, but the port .* dropped 3 frames/);
  });

  it('names the VLAN of an unreliable connection, and reports an unnamed cause', () => {
    const causesOfDrop = (reason: string): readonly Cause[] =>
      causesAfter(unreliable, (_, far) => {
        far.drops = [{ ...dropOf(far, reason), opcode: 0x24 }];
        far.qps = far.qps.map((qp) => ({ ...qp, noReceive: 0 }));
      });
    expect(causesOfDrop('vlanFilter').map(({ cause }) => cause)).toContain('uc-wrong-vlan');
    expect(causesOfDrop('other').map(({ cause }) => cause)).toContain('uc-dropped');
  });

  it('reports that a third-party endpoint does not answer, and its refusal', () => {
    const silent = causesAfter(lost, (near) => withError(near, CqeSyndrome.TRANSPORT_RETRY_EXC_ERR), true);
    expect(faultsOf(silent)).toEqual(['no-answer']);
    expect(silent[0]!.sentence).toMatch(/got no answer: .* and its peer is not of this machine/);
    const denied = causesAfter(refused, () => {}, true);
    expect(faultsOf(denied)).toEqual(['refused-by-peer']);
    expect(denied[0]!.sentence).toMatch(/is not of this machine or kept no reason/);
  });

  it('names the version of RoCE of a third-party endpoint from its packets alone', async () => {
    const other = await devicesOf('sgid_index of RoCE v1 here, of v2 there', roceSet);
    const causes = causesAfter(other, () => {}, true);
    expect(faultsOf(causes)).toEqual(['roce-version']);
    expect(causes[0]!.sentence).toMatch(
      /QP .* of host 0 speaks RoCE v1, and \d+ packets? of RoCE v2 and none of its own version came to it/,
    );
  });

  it.each([
    ['bad-response', /do not have the lengths that its READ asked for/, CqeSyndrome.BAD_RESP_ERR, undefined],
    [
      'invalid-request',
      /refused .* of 64 bytes: it does not continue/,
      CqeSyndrome.REMOTE_INVAL_REQ_ERR,
      'sequence',
    ],
    ['peer-queue-broken', /could not read its receive queue/, CqeSyndrome.REMOTE_OP_ERR, 'broken'],
    ['flushed', /was in ERR when the request was posted/, CqeSyndrome.WR_FLUSH_ERR, undefined],
  ])('names %s', (cause, words, syndrome, check) => {
    const causes = causesAfter(refused, (near, far) => {
      withError(near, syndrome);
      far.accesses = [];
      far.refusals = check === undefined ? [] : [refusalOf(far, check)];
    });
    expect(faultsOf(causes)).toEqual([cause]);
    expect(causes[0]!.sentence).toMatch(words);
  });

  it('names a CQ that the device cannot write, and a command that it rejected', () => {
    const causes = causesAfter(refused, (near, far) => {
      near.errors = [];
      far.errors = [];
      near.cqs = near.cqs.map((cq, index) =>
        index === near.cqs.length - 1 ? { ...cq, status: 'failed' } : cq,
      );
      near.commands = [{ command: 'RTR2RTS_QP', status: 'BAD_PARAM', inputModifier: 0x41, atPs: 0 }];
    });
    expect(causes.map(({ cause }) => cause)).toEqual(['cq-unwritable', 'command-rejected']);
    expect(causes[1]!.sentence).toMatch(/rejected RTR2RTS_QP of object 0x41 with BAD_PARAM/);
  });
});

describe('a stream of iWARP that ended for a reason that no evidence has', () => {
  const iwarpSet = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' };
  let ended: Evidence;
  beforeAll(async () => {
    ended = await devicesOf('a SEND without a receive', iwarpSet);
  });

  /** Replaces the errors of both streams, and drops the completions that they flushed. */
  const endingAs = (near: Partial<StreamEvidence>, far: Partial<StreamEvidence>, isAlone = false) =>
    causesAfter(ended, (nearDevice, farDevice) => withEnds(nearDevice, near, farDevice, far), isAlone);
  const withEnds = (
    near: Changed,
    nearEnd: Partial<StreamEvidence>,
    far: Changed,
    farEnd: Partial<StreamEvidence>,
  ): void => {
    for (const [device, end] of [
      [near, nearEnd],
      [far, farEnd],
    ] as const) {
      device.errors = [];
      device.streams = device.streams.map(({ ownError: _, peerError: __, end: ___, ...stream }) => ({
        ...stream,
        ...end,
      }));
    }
  };
  const error = (code: number) => ({ error: code, atPs: 5e9 });

  it('RFC 5044, 8: shows the words of a Terminate, and says that no cause is known', () => {
    const causes = endingAs({ peerError: error(0x2002) }, { ownError: error(0x2002) });
    expect(faultsOf(causes)).toEqual(['terminated']);
    expect(causes[0]!.sentence).toMatch(
      /Terminate of the card of host 1, 0x2002: MPA: CRC of an FPDU is wrong; no further cause is known over iWARP/,
    );
  });

  it('shows the Terminate of a peer outside of this machine', () => {
    const causes = endingAs({ peerError: error(0x1202) }, {}, true);
    expect(faultsOf(causes)).toEqual(['terminated']);
    expect(causes[0]!.sentence).toMatch(/a Terminate of its peer, 0x1202: .*no buffer available/);
  });

  it.each([
    ['connection-reset', /was reset \(RST\) at 6 ms; no further cause is known over iWARP/, {}],
    ['peer-qp-destroyed', /its peer, QP 0x\w+ of host 1, was destroyed at 5\.5 ms/, { destroyedPs: 5.5e9 }],
    [
      'peer-qp-error',
      /the program of host 1 put its QP 0x\w+ into ERR at 5\.5 ms/,
      { states: [{ state: 'ERR', by: 'software', atPs: 5.5e9 }] },
    ],
  ] as const)('names %s of a stream that was reset', (cause, words, peer) => {
    const causes = causesAfter(ended, (near, far) => {
      const at = { end: 'reset', endedPs: 6e9 } as const;
      withEnds(near, { ...at, hasAborted: false }, far, { ...at, hasAborted: true });
      withError(near, CqeSyndrome.WR_FLUSH_ERR);
      // Programs that end destroy their QPs.
      far.qps = far.qps.map(({ destroyedPs: _, ...qp }) => ({ ...qp, ...peer }));
    });
    expect(faultsOf(causes)).toEqual([cause]);
    expect(causes[0]!.sentence).toMatch(words);
  });

  it('names the FIN if no call of rdma_disconnect is known', () => {
    const causes = causesAfter(ended, (near, far) => {
      const closed = { end: 'closed', endedPs: 6e9, peerClosedPs: 5e9 } as const;
      withEnds(near, closed, far, closed);
      withError(near, CqeSyndrome.WR_FLUSH_ERR);
    });
    expect(faultsOf(causes)).toEqual(['peer-disconnected']);
    expect(causes[0]!.sentence).toMatch(/was closed \(FIN\) at 5 ms: requests/);
  });

  it('says of a request that stalls on an open connection that no cause is known', () => {
    const { devices, topology } = structuredClone(ended);
    withEnds(devices[0] as Changed, {}, devices[1] as Changed, {});
    const alive = devices.map((device) => ({
      ...device,
      qps: device.qps.map(({ destroyedPs: _, ...qp }) => qp),
    }));
    const scene = new Scene({ devices: alive, hosts: [], topology });
    const explanation = stalledStream(scene, 0, connection(alive[0]!), 'Program p waits');
    expect(explanation).toMatchObject({ cause: 'stream-stalled' });
    expect(explanation!.sentence).toMatch(
      /on a connection that is open.*no further cause is known over iWARP/,
    );
  });
});
