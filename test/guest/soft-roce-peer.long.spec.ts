/** An adapter with RoCE, and at the other end of its cable another guest's network card under Linux's Soft-RoCE. */
import { testScenario } from './suite.ts';

await testScenario('soft-roce-peer', 'debian');
