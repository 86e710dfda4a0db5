/**
 * QPs of a card that speaks iWARP: the kernel takes them from INIT to RTS when their connection is made, since only it knows the
 * connection. A program takes them to INIT and ERR. Sources: reference/iwarp-interface.md; Linux 6.1, cxgb4's qp.c (c4iw_modify_qp).
 */
import {
  iwarpContext,
  iwarpOffsetInQpc,
  OptionalParameter,
  PathMtu,
  QpState,
  qpcOffsetInMailbox,
  qpMailbox,
} from '../../abi/index.ts';
import type { StreamOfQp } from '../cm/index.ts';
import type { CommandInterface } from '../command-interface.ts';
import { KernelError, require } from '../kernel-error.ts';
import type { Cpu } from '../platform.ts';
import type { QueuePair } from '../qp.ts';
import { logReads, standingFields } from '../qp-context.ts';
import { QpStateVerb, QpTypeVerb } from '../uapi.ts';

/** The rights are set by bits of their own. */
const { RRE, RWE, RAE } = OptionalParameter;
const optionalParameterMask = 2 ** RRE + 2 ** RWE + 2 ** RAE;
/**
 * A connected QP serves READs, WRITEs and, on a card that has them, atomics; memory regions decide the rest. rdma_create_qp takes a QP to INIT without rights, and with iWARP
 * nothing sets them later (librdmacm, ucma_init_conn_qp; Linux 6.1, cma.c, rdma_init_qp_attr); cxgb4 enables READs and WRITEs (qp.c, rdma_init).
 */
const connectedRights = { remoteReadEnabled: 1, remoteWriteEnabled: 1, remoteAtomicEnabled: 1 } as const;
const { IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RESET, IBV_QPS_RTS } = QpStateVerb;

export class IwarpQps {
  readonly #commands: CommandInterface;
  readonly #byNumber = new Map<number, QueuePair>();

  constructor(commands: CommandInterface) {
    this.#commands = commands;
  }

  add(qp: QueuePair): void {
    this.#byNumber.set(qp.qpn, qp);
  }

  remove(qp: QueuePair): void {
    this.#byNumber.delete(qp.qpn);
  }

  /**
   * Takes a QP to RTS on a connection.
   * @throws KernelError EINVAL for a number that no QP has, or a QP that is not in INIT; ECONNRESET if the peer has ended the stream meanwhile
   */
  async attach(cpu: Cpu, qpn: number, stream: StreamOfQp): Promise<void> {
    const qp = this.#byNumber.get(qpn);
    require(qp !== undefined, `qpNum is ${qpn}, expected that of a QP of this device`);
    require(qp.state === IBV_QPS_INIT, `the QP is in state ${qp.state}, expected INIT`);
    await this.#transition(cpu, qp, 'INIT2RTR_QP', QpState.RTR, stream);
    qp.state = QpStateVerb.IBV_QPS_RTR;
    try {
      await this.#transition(cpu, qp, 'RTR2RTS_QP', QpState.RTS, stream);
    } catch (error) {
      // The stream is the QP's since RTR, and a Terminate of the peer has taken it to ERR.
      if (!(error instanceof KernelError) || error.code !== 'EINVAL') throw error;
      throw new KernelError('ECONNRESET', `the peer has ended the connection (${error.message})`);
    }
    qp.state = IBV_QPS_RTS;
  }

  async #transition(
    cpu: Cpu,
    qp: QueuePair,
    command: 'INIT2RTR_QP' | 'RTR2RTS_QP',
    state: QpState,
    { connection, isInitiator, agreement }: StreamOfQp,
  ): Promise<void> {
    const { geometry } = qp;
    const context = {
      state,
      ...standingFields(geometry),
      pathMtu: PathMtu.MTU_4096,
      logMaxMessage: geometry.logMaxMessageBytes,
      // The requester counts READs by this power of two, the stream by ORD: the smaller one binds.
      logMaxRequesterReads: logReads(agreement.outboundReads),
      ...connectedRights,
    };
    await this.#commands.executeWithMailbox(cpu, command, { inputModifier: qp.qpn }, (bytes, at) => {
      qpMailbox.encodeInto({ optionalParameterMask, context }, bytes, at);
      iwarpContext.encodeInto(
        {
          connection,
          isInitiator: isInitiator ? 1 : 0,
          sendsMarkers: agreement.sendsMarkers ? 1 : 0,
          receivesMarkers: agreement.receivesMarkers ? 1 : 0,
          hasCrc: agreement.usesCrc ? 1 : 0,
          rtr: agreement.ready,
          inboundReads: agreement.inboundReads,
          outboundReads: agreement.outboundReads,
        },
        bytes,
        at + qpcOffsetInMailbox + iwarpOffsetInQpc,
      );
    });
  }
}

/** Refuses transitions that only a connection makes. @throws KernelError EINVAL */
export function requireProgramTransition(from: QpStateVerb, to: QpStateVerb): void {
  if (to === IBV_QPS_RESET || to === IBV_QPS_ERR || from === to) return;
  require(from === IBV_QPS_RESET &&
    to === IBV_QPS_INIT, `state ${from} to ${to}: with iWARP rdma_connect and rdma_accept take a QP to RTS`);
}

/** @throws KernelError EOPNOTSUPP for a type that iWARP does not have */
export function requireConnectedType(type: QpTypeVerb): void {
  if (type === QpTypeVerb.IBV_QPT_RC) return;
  throw new KernelError('EOPNOTSUPP', `type is ${type}, expected IBV_QPT_RC: iWARP has no other`);
}
