/**
 * How a comparison counts the bytes of its stream on the cable: the counters of the ports are read from outside at two
 * instants that the programs announce, with an idle cable at both.
 *
 *     latency ─ idle ─ start … all messages … end ─ idle ─ close
 *                     └──────────── counted ───────────┘
 *
 * The cable is idle when the acknowledgements that TCP delays have left: those of the kernel for sockets, those of the card
 * for iWARP. Other paths delay none.
 */
import { usToPs } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import type { CompareArgs } from './compare-plan.ts';
import { announceEnd } from './perf-start.ts';
import { barrier } from './rc-endpoint.ts';

/** Waits until nothing of the transfers before is under way. Runs on both sides. */
export async function untilCableIsIdle({
  args,
  cpu,
  configuration,
}: ProgramContext<CompareArgs>): Promise<void> {
  const { net, hca } = configuration;
  const isIwarp = args.path !== 'sockets' && hca.capability.transport === 'iwarp';
  if (args.path === 'sockets') await cpu.sleep(usToPs(net.stack.delayedAckUs));
  else if (isIwarp) await cpu.sleep(usToPs(hca.iwarp.delayedAckUs));
}

/** Waits until the stream's bytes have been counted: neither side may close its connection earlier. */
export async function untilCableIsCounted(program: ProgramContext<CompareArgs>): Promise<void> {
  await untilCableIsIdle(program);
  await announceEnd(program);
  await barrier(program, 'cable counted');
}
