import { testScenario } from './suite.ts';

await testScenario('faults-work', 'backports');
