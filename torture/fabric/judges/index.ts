/** The judges of a fabric's story. None shares code with the switches: they read outcomes, report, capture and the written tables. */
import type { PlayedFabric } from '../played.ts';
import { judgeBalance } from './balance.ts';
import { judgeDelivery } from './delivery.ts';
import { judgeLimits } from './limits.ts';
import { judgePackets } from './packets.ts';
import { judgeQuiet } from './quiet.ts';
import { judgeRates } from './rates.ts';
import { judgeRoutes } from './routes.ts';

export interface FabricJudge {
  readonly name: string;
  /** @returns the contradictions; empty when all is well */
  judge(played: PlayedFabric): string[];
}

export const fabricJudges: readonly FabricJudge[] = [
  { name: 'routes', judge: judgeRoutes },
  { name: 'delivery', judge: judgeDelivery },
  { name: 'balance', judge: judgeBalance },
  { name: 'packets', judge: judgePackets },
  { name: 'rates', judge: judgeRates },
  { name: 'limits', judge: judgeLimits },
  { name: 'quiet', judge: judgeQuiet },
];
