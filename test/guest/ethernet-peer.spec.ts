/** A stock guest with mlx4_en, and a simulated host with its kernel's TCP, at the two ends of an Ethernet cable. */
import { testScenario } from './suite.ts';

await testScenario('ethernet-peer', 'debian');
