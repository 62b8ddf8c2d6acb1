export default { client: "pg", connection: {} };
