BEGIN TRANSACTION;
CREATE TABLE agent_runs (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    agent TEXT NOT NULL,
    caller TEXT NOT NULL,
    state TEXT NOT NULL,
    ending TEXT,
    usage TEXT,
    labels INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    process TEXT NOT NULL,
    taken INTEGER NOT NULL
, origin TEXT NOT NULL DEFAULT '', task TEXT NOT NULL DEFAULT '');
INSERT INTO "agent_runs" VALUES('run_01a1eaf8d0bd43c321307186088f472d','session_01a1eaf8d0bdb12334edf39d23b2ef16','assistant','key:admin','ended','answered','{"requests":2,"input_tokens":0,"output_tokens":0,"cost_usd":0.0}',4,1794943537342087371,1794943537544581340,'process_01a1eaf8cf5a5b14bac52f48a6220f39',0,'{"mode":"execution","project":"default","spec":null,"task":null,"blacklist":[],"trace":"21896ce1fd4d69bfa03437600e5def95","span":"bee76083b069fa72","depth":1,"ancestors":[],"starry":null,"shared":false}','');
CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    caller TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments_hash TEXT NOT NULL,
    run TEXT NOT NULL,
    rule TEXT NOT NULL,
    reason TEXT NOT NULL,
    arguments TEXT NOT NULL,
    state TEXT NOT NULL,
    scope TEXT NOT NULL,
    asked_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    answered_at INTEGER,
    answered_by TEXT
);
INSERT INTO "approvals" VALUES('ask_01a1eaf8955b75e53ab95cf4dd94b257','key:admin','builtin:shell_exec','342b88faa4cdc67edc31c284cb70dc4528c8b191be7348914883538c04c31de0','','spec_not_frozen','Execution mode requires spec_frozen=True','{"command":"date"}','pending','once',1794943522139783930,7258118400000000000,NULL,NULL);
CREATE TABLE audit (
    node TEXT NOT NULL,
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    event TEXT NOT NULL,
    level TEXT NOT NULL,
    call_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    payload TEXT NOT NULL,
    context TEXT NOT NULL,
    hash BLOB NOT NULL
);
INSERT INTO "audit" VALUES('node-4ac9a82b',1,1794943514019223450,'key_created','info','','','{"key":"key_01a1eaf875a28fab507a2e7d0d79cf79","name":"admin","role":"admin","by":"init"}','{}',X'117219BDDD7D05B372C483E56E1EAE9A31464FA596574A20906A421AEBB23CE5');
INSERT INTO "audit" VALUES('node-4ac9a82b',2,1794943516591008797,'policy_decision','info','call_01a1eaf87fa9f69f9614b19d366cc0fe','','{"decision":"allow","gates":[{"gate":"disabled","verdict":"allow"},{"gate":"mode","verdict":"allow"},{"gate":"spec_frozen","verdict":"allow"},{"gate":"project","verdict":"allow"},{"gate":"policy","verdict":"allow"},{"gate":"admin_token","verdict":"allow"},{"gate":"trust","verdict":"allow"},{"gate":"grants","verdict":"allow"}]}','{"source_type":"builtin","tool":"builtin:system_time","caller":"key:admin","edge":"cli","trace":"66ccc2f59187868288600e2af9bd98df","depth":1,"mode":"execution","project":"default","process":"process_01a1eaf87f978f6c57654f3e640dac9a"}',X'76F4CB246F15CEBCC0A33E0BAD857703B48F7A17B7276BA03692E304392BD26D');
INSERT INTO "audit" VALUES('node-4ac9a82b',3,1794943516591008797,'tool_invocation_start','info','call_01a1eaf87fa9f69f9614b19d366cc0fe','','{"arguments":{},"risk":"LOW","side_effects":[],"labels":["user_input"]}','{"source_type":"builtin","tool":"builtin:system_time","caller":"key:admin","edge":"cli","trace":"66ccc2f59187868288600e2af9bd98df","depth":1,"mode":"execution","project":"default","process":"process_01a1eaf87f978f6c57654f3e640dac9a"}',X'E44424B0D327B9D991AC564F10B7CED37A765A8C9BB7C974256FD2F6063182E6');
INSERT INTO "audit" VALUES('node-4ac9a82b',4,1794943516604533105,'tool_invocation_end','info','call_01a1eaf87fa9f69f9614b19d366cc0fe','','{"outcome":"ok","duration_us":13800,"labels":[]}','{"source_type":"builtin","tool":"builtin:system_time","caller":"key:admin","edge":"cli","trace":"66ccc2f59187868288600e2af9bd98df","depth":1,"mode":"execution","project":"default","process":"process_01a1eaf87f978f6c57654f3e640dac9a"}',X'4362192101DC42D31A2E30499CE890F57CBBBDEDB62F29FD034BEF3745B0027B');
INSERT INTO "audit" VALUES('node-4ac9a82b',5,1794943519521415801,'policy_decision','info','call_01a1eaf88b1ac78ede3179b7d8f0a8a4','','{"decision":"allow","gates":[{"gate":"disabled","verdict":"allow"},{"gate":"mode","verdict":"allow"},{"gate":"spec_frozen","verdict":"allow"},{"gate":"project","verdict":"allow"},{"gate":"policy","verdict":"allow"},{"gate":"admin_token","verdict":"allow"},{"gate":"trust","verdict":"allow"},{"gate":"grants","verdict":"allow"}]}','{"source_type":"builtin","tool":"builtin:file_write","caller":"key:admin","edge":"cli","trace":"1eaad364d8140124b80a300574d4965e","depth":1,"mode":"execution","project":"default","process":"process_01a1eaf88b0e5c14f1e16c415ce1ec6d"}',X'9A1569DE177233256B3653886D82DEFA91960D85AE6E684292409FA0F0847791');
INSERT INTO "audit" VALUES('node-4ac9a82b',6,1794943519521415801,'tool_invocation_start','info','call_01a1eaf88b1ac78ede3179b7d8f0a8a4','','{"arguments":{"content":"kept","path":"a.txt"},"risk":"MEDIUM","side_effects":["fs.write"],"labels":["user_input"]}','{"source_type":"builtin","tool":"builtin:file_write","caller":"key:admin","edge":"cli","trace":"1eaad364d8140124b80a300574d4965e","depth":1,"mode":"execution","project":"default","process":"process_01a1eaf88b0e5c14f1e16c415ce1ec6d"}',X'97615E8AA850F45D3A9E16BEEB3D758911FD14CF19C2BF1F7CFAFF8D8FD705B9');
INSERT INTO "audit" VALUES('node-4ac9a82b',7,1794943519538585410,'tool_invocation_end','info','call_01a1eaf88b1ac78ede3179b7d8f0a8a4','','{"outcome":"ok","duration_us":17293,"labels":[]}','{"source_type":"builtin","tool":"builtin:file_write","caller":"key:admin","edge":"cli","trace":"1eaad364d8140124b80a300574d4965e","depth":1,"mode":"execution","project":"default","process":"process_01a1eaf88b0e5c14f1e16c415ce1ec6d"}',X'664D66EFD4E1CCC7854990D4AFD333F7EDC288407E634AA351A0164BFDB50B18');
INSERT INTO "audit" VALUES('node-4ac9a82b',8,1794943522140367598,'approval_requested','info','','','{"question":"ask_01a1eaf8955b75e53ab95cf4dd94b257","state":"pending","scope":"once","rule":"spec_not_frozen","reason":"Execution mode requires spec_frozen=True","arguments_hash":"342b88faa4cdc67edc31c284cb70dc4528c8b191be7348914883538c04c31de0","answered_by":null}','{"caller":"key:admin","tool":"builtin:shell_exec"}',X'BB0454D72ED0466C194281E2FB7BDE8120CE1A4F5BD3C3A58BB8A76F26CF1702');
INSERT INTO "audit" VALUES('node-4ac9a82b',9,1794943522147377040,'policy_decision','info','call_01a1eaf8955206337174c6b46d220e0c','','{"decision":"ask","gates":[{"gate":"disabled","verdict":"allow"},{"gate":"mode","verdict":"allow"},{"gate":"spec_frozen","verdict":"ask","reason":"Execution mode requires spec_frozen=True","code":"spec_not_frozen"},{"gate":"project","verdict":"allow"},{"gate":"policy","verdict":"allow"},{"gate":"admin_token","verdict":"allow"},{"gate":"trust","verdict":"allow"},{"gate":"grants","verdict":"allow"}]}','{"source_type":"builtin","tool":"builtin:shell_exec","caller":"key:admin","edge":"cli","trace":"a8fe5f44ac8d28850f288a9eaabc7530","depth":1,"mode":"execution","project":"default","process":"process_01a1eaf89550ff28b7bf2ca24eb037f9"}',X'5ED11E0D7BED0970754289475551D63EEEF74D8172B8C7CFD25B3C08BA1D6DDA');
INSERT INTO "audit" VALUES('node-4ac9a82b',10,1794943526941438945,'key_created','info','','','{"key":"key_01a1eaf8a81d38081aa8663377636829","name":"other","role":"user"}','{"caller":"key:admin"}',X'EC372101FFDB3740E8CB00572467012C6972AE2533DE1B19DC74A6E1F75A20E1');
INSERT INTO "audit" VALUES('node-4ac9a82b',11,1794943531635019705,'policy_decision','info','call_01a1eaf8ba6221fc59c0a3d4a5ae884e','','{"decision":"allow","gates":[{"gate":"disabled","verdict":"allow"},{"gate":"mode","verdict":"allow"},{"gate":"spec_frozen","verdict":"allow"},{"gate":"project","verdict":"allow"},{"gate":"policy","verdict":"allow"},{"gate":"admin_token","verdict":"allow"},{"gate":"trust","verdict":"allow"},{"gate":"grants","verdict":"allow"}]}','{"source_type":"builtin","tool":"builtin:memory_store","caller":"key:admin","edge":"cli","trace":"c0bdfab5e27380ea37b15e7b9f6fa9d1","depth":1,"mode":"execution","project":"default","process":"process_01a1eaf8ba607b8f0161146aca9e2cfd"}',X'4FCEF9F9CC8BBD07D6402C71333E6C512081E65DAF70734143FC7141D0A0A83D');
INSERT INTO "audit" VALUES('node-4ac9a82b',12,1794943531635019705,'tool_invocation_start','info','call_01a1eaf8ba6221fc59c0a3d4a5ae884e','','{"arguments":{"key":"colour","value":"green"},"risk":"LOW","side_effects":["database.write"],"labels":["user_input"]}','{"source_type":"builtin","tool":"builtin:memory_store","caller":"key:admin","edge":"cli","trace":"c0bdfab5e27380ea37b15e7b9f6fa9d1","depth":1,"mode":"execution","project":"default","process":"process_01a1eaf8ba607b8f0161146aca9e2cfd"}',X'40562393741BD520B11EADC30FE26803751CE6E6E85B48CC9220177CC46FF815');
INSERT INTO "audit" VALUES('node-4ac9a82b',13,1794943531654353121,'tool_invocation_end','info','call_01a1eaf8ba6221fc59c0a3d4a5ae884e','','{"outcome":"ok","duration_us":19649,"labels":[]}','{"source_type":"builtin","tool":"builtin:memory_store","caller":"key:admin","edge":"cli","trace":"c0bdfab5e27380ea37b15e7b9f6fa9d1","depth":1,"mode":"execution","project":"default","process":"process_01a1eaf8ba607b8f0161146aca9e2cfd"}',X'703D1D97303B89E32D950742A2F3F1EEE8E94CDD5335B421AF9E7027B557985E');
INSERT INTO "audit" VALUES('node-4ac9a82b',14,1794943537341181054,'policy_decision','info','call_01a1eaf8d0bb9c3ded639241623f52d0','','{"decision":"allow","gates":[{"gate":"disabled","verdict":"allow"},{"gate":"mode","verdict":"allow"},{"gate":"spec_frozen","verdict":"allow"},{"gate":"project","verdict":"allow"},{"gate":"policy","verdict":"allow"},{"gate":"admin_token","verdict":"allow"},{"gate":"trust","verdict":"allow"},{"gate":"grants","verdict":"allow"}]}','{"source_type":"agent","tool":"agent:assistant","caller":"key:admin","edge":"cli","trace":"21896ce1fd4d69bfa03437600e5def95","depth":1,"mode":"execution","project":"default","process":"process_01a1eaf8cf5a5b14bac52f48a6220f39"}',X'3BF1FB67E4A40F5D8C6F7A28B7B656A3B4409515CBD6050C282E2D34CEAB70CF');
INSERT INTO "audit" VALUES('node-4ac9a82b',15,1794943537341181054,'tool_invocation_start','info','call_01a1eaf8d0bb9c3ded639241623f52d0','','{"arguments":{"message":"what time is it?"},"risk":"LOW","side_effects":[],"labels":["user_input"]}','{"source_type":"agent","tool":"agent:assistant","caller":"key:admin","edge":"cli","trace":"21896ce1fd4d69bfa03437600e5def95","depth":1,"mode":"execution","project":"default","process":"process_01a1eaf8cf5a5b14bac52f48a6220f39"}',X'15E54A6FCC77A6EC9AF8049B60727C11ECCA210834084DCA63364D67B084F6CD');
INSERT INTO "audit" VALUES('node-4ac9a82b',16,1794943537522984138,'policy_decision','info','call_01a1eaf8d1627af7d81da05bab5252e9','','{"decision":"allow","gates":[{"gate":"disabled","verdict":"allow"},{"gate":"mode","verdict":"allow"},{"gate":"spec_frozen","verdict":"allow"},{"gate":"project","verdict":"allow"},{"gate":"policy","verdict":"allow"},{"gate":"admin_token","verdict":"allow"},{"gate":"trust","verdict":"allow"},{"gate":"grants","verdict":"allow"}]}','{"source_type":"builtin","tool":"builtin:system_time","caller":"agent:assistant","edge":"cli","trace":"21896ce1fd4d69bfa03437600e5def95","depth":2,"mode":"execution","project":"default","process":"process_01a1eaf8cf5a5b14bac52f48a6220f39","run":"run_01a1eaf8d0bd43c321307186088f472d","ancestors":["agent:assistant"]}',X'F738072B0D3634103B0BBD7CF170E193D0FC10AA6E8624A864C81D679D91A2E1');
INSERT INTO "audit" VALUES('node-4ac9a82b',17,1794943537522984138,'tool_invocation_start','info','call_01a1eaf8d1627af7d81da05bab5252e9','','{"arguments":{},"risk":"LOW","side_effects":[],"labels":["user_input"]}','{"source_type":"builtin","tool":"builtin:system_time","caller":"agent:assistant","edge":"cli","trace":"21896ce1fd4d69bfa03437600e5def95","depth":2,"mode":"execution","project":"default","process":"process_01a1eaf8cf5a5b14bac52f48a6220f39","run":"run_01a1eaf8d0bd43c321307186088f472d","ancestors":["agent:assistant"]}',X'4F29A1856AFFB2BDBE7265EEDE12C7B0EA85160D9981B4103D2ECD57099D30AF');
INSERT INTO "audit" VALUES('node-4ac9a82b',18,1794943537525646927,'tool_invocation_end','info','call_01a1eaf8d1627af7d81da05bab5252e9','','{"outcome":"ok","duration_us":2584,"labels":[]}','{"source_type":"builtin","tool":"builtin:system_time","caller":"agent:assistant","edge":"cli","trace":"21896ce1fd4d69bfa03437600e5def95","depth":2,"mode":"execution","project":"default","process":"process_01a1eaf8cf5a5b14bac52f48a6220f39","run":"run_01a1eaf8d0bd43c321307186088f472d","ancestors":["agent:assistant"]}',X'6E33F9875496F068300A7BAA55E1DD970AD25D4E018A5B09D24FB3FDC90A0B67');
INSERT INTO "audit" VALUES('node-4ac9a82b',19,1794943537545106341,'tool_invocation_end','info','call_01a1eaf8d0bb9c3ded639241623f52d0','','{"outcome":"ok","duration_us":204154,"labels":["user_input"]}','{"source_type":"agent","tool":"agent:assistant","caller":"key:admin","edge":"cli","trace":"21896ce1fd4d69bfa03437600e5def95","depth":1,"mode":"execution","project":"default","process":"process_01a1eaf8cf5a5b14bac52f48a6220f39"}',X'95E17F1AC1A4CC5B11095C5C5BA5C094EA6CB4190C795430D74ECCF504269827');
CREATE TABLE begun (
    run TEXT NOT NULL,
    wish TEXT NOT NULL,
    PRIMARY KEY (run, wish)
);
CREATE TABLE blobs (
    id TEXT PRIMARY KEY,
    caller TEXT NOT NULL,
    body BLOB NOT NULL,
    labels INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE TABLE checkpoints (
    node TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    hash BLOB NOT NULL,
    signer TEXT NOT NULL,
    signature BLOB NOT NULL,
    PRIMARY KEY (node, seq)
);
INSERT INTO "checkpoints" VALUES('node-4ac9a82b',1,1794943514018545091,X'117219BDDD7D05B372C483E56E1EAE9A31464FA596574A20906A421AEBB23CE5','7d2d73a9f6e5cefc',X'52F32E2F04353591770752AE6EAD3CD926656333E2F9D3805493356B9FD835F4D2C538126945CD021EBBFF7E528AC91CDB9F4C9A9C6AC76ED96B38983A792902');
INSERT INTO "checkpoints" VALUES('node-4ac9a82b',4,1794943516605919076,X'4362192101DC42D31A2E30499CE890F57CBBBDEDB62F29FD034BEF3745B0027B','7d2d73a9f6e5cefc',X'D488898854A260C85C9A8A51F9CE052CE26EE4EE1DFBE5BB030489DC7EC12142157498044497184FB3D2D3A43D8942572B04A9EB2BAD64ACBCCD75AA24783108');
INSERT INTO "checkpoints" VALUES('node-4ac9a82b',7,1794943519539326973,X'664D66EFD4E1CCC7854990D4AFD333F7EDC288407E634AA351A0164BFDB50B18','7d2d73a9f6e5cefc',X'A83E24C608DCF8763C4DCB648DCE954166AF1ACF2C9FE30807B86785E0EAF9E5B5829800A65358BC652CB321E2D8DF7D5CC73488E029550F76FE779932F08107');
INSERT INTO "checkpoints" VALUES('node-4ac9a82b',9,1794943522148227544,X'5ED11E0D7BED0970754289475551D63EEEF74D8172B8C7CFD25B3C08BA1D6DDA','7d2d73a9f6e5cefc',X'3BDE05E625167B12A46B50CC3854FE2378A2C7EE1C05D0BA98EF013F60FC39795EDF83ED0780050C7CB40D6622608B332A26A8213731B1C6B01FA16EA3475B0B');
INSERT INTO "checkpoints" VALUES('node-4ac9a82b',10,1794943526968489616,X'EC372101FFDB3740E8CB00572467012C6972AE2533DE1B19DC74A6E1F75A20E1','7d2d73a9f6e5cefc',X'A308859AD56A5814F0178F65327884DE9735F4424F6E90BAB549B732B004803BDCF2C5D404AF282CF22E1E4E253DB51983CBC85AD77A4BA5BCA46670FD66F30A');
INSERT INTO "checkpoints" VALUES('node-4ac9a82b',13,1794943531655249133,X'703D1D97303B89E32D950742A2F3F1EEE8E94CDD5335B421AF9E7027B557985E','7d2d73a9f6e5cefc',X'53C4ECC822410AE0EC4D9053156CCE6EFA9815E1C467E483161FB61B53DFC16134C9423B5751336886B493A3144B1B4610166A43ABFDB542F98BF3292A0E0301');
INSERT INTO "checkpoints" VALUES('node-4ac9a82b',19,1794943537545790348,X'95E17F1AC1A4CC5B11095C5C5BA5C094EA6CB4190C795430D74ECCF504269827','7d2d73a9f6e5cefc',X'B1EC631A6CCC8291A0709C197EDC6FAB62F3E61088A4DA6BA5EFCEEF7BF8A6466027F244A4314DD1DF050A85D7D8398FD1BA212A8BE0BF859A9C0E67438CFE04');
CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
);
INSERT INTO "keys" VALUES('key_01a1eaf875a28fab507a2e7d0d79cf79','admin','key',X'0E660939495B12A57B17D488359D1524FC9706641F8CC5E21D556E8FEC9CC6E1','{"role":"admin","edges":["*"],"toolsets":["*"],"agents":["*"],"tools":["*"],"network":["*"],"shell":["*"],"memory_read":["*"],"memory_write":["*"],"mode":"execution","projects":["default"],"spec":null,"blacklist":[],"cells_per_minute":null}',1794943514018545091,NULL,NULL);
INSERT INTO "keys" VALUES('key_01a1eaf8a81d38081aa8663377636829','other','key',X'C52108FAB1A0124FFF9024E2AF38BFF77103D35D8902A38C5CF9194F6E9CB56B','{"role":"user","edges":["*"],"toolsets":["*"],"agents":["*"],"tools":["*"],"network":[],"shell":[],"memory_read":[],"memory_write":[],"mode":"execution","projects":["default"],"spec":null,"blacklist":[],"cells_per_minute":null}',1794943526941077298,NULL,NULL);
CREATE TABLE memory (
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    labels INTEGER NOT NULL,
    stored_at INTEGER NOT NULL,
    PRIMARY KEY (space, name)
);
INSERT INTO "memory" VALUES('key-admin','colour','"green"',4,1794943531651856539);
CREATE TABLE migrations (number INTEGER PRIMARY KEY, applied_at INTEGER);
INSERT INTO "migrations" VALUES(1,1794943513925754776);
INSERT INTO "migrations" VALUES(2,1794943513925855015);
INSERT INTO "migrations" VALUES(3,1794943513926245235);
INSERT INTO "migrations" VALUES(4,1794943513926544189);
INSERT INTO "migrations" VALUES(5,1794943513927306843);
CREATE TABLE names (
    tool TEXT PRIMARY KEY,
    wire_name TEXT NOT NULL UNIQUE
);
INSERT INTO "names" VALUES('builtin:system_time','system_time');
INSERT INTO "names" VALUES('builtin:file_read','file_read');
INSERT INTO "names" VALUES('builtin:file_write','file_write');
INSERT INTO "names" VALUES('builtin:file_list','file_list');
INSERT INTO "names" VALUES('builtin:memory_store','memory_store');
INSERT INTO "names" VALUES('builtin:memory_recall','memory_recall');
INSERT INTO "names" VALUES('builtin:shell_exec','shell_exec');
INSERT INTO "names" VALUES('builtin:web_fetch','web_fetch');
INSERT INTO "names" VALUES('builtin:agent_send','agent_send');
INSERT INTO "names" VALUES('builtin:agent_list','agent_list');
INSERT INTO "names" VALUES('builtin:agent_find','agent_find');
INSERT INTO "names" VALUES('builtin:agent_spawn','agent_spawn');
INSERT INTO "names" VALUES('builtin:agent_kill','agent_kill');
INSERT INTO "names" VALUES('builtin:a2a_discover','a2a_discover');
INSERT INTO "names" VALUES('builtin:a2a_send','a2a_send');
INSERT INTO "names" VALUES('agent:assistant','openfang_agent_assistant');
INSERT INTO "names" VALUES('agent:echo','openfang_agent_echo');
CREATE TABLE peer_tasks (
    peer TEXT NOT NULL,
    task TEXT NOT NULL,
    caller TEXT NOT NULL,
    context TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (peer, task)
);
CREATE TABLE peers (
    name TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    card TEXT NOT NULL,
    seen_at INTEGER NOT NULL
);
CREATE TABLE pins (
    tool TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    definition TEXT NOT NULL,
    first_seen INTEGER NOT NULL
);
CREATE TABLE processes (
    id TEXT PRIMARY KEY,
    started_at INTEGER NOT NULL,
    low_water INTEGER NOT NULL,
    ended_at INTEGER
);
INSERT INTO "processes" VALUES('process_01a1eaf87f978f6c57654f3e640dac9a',1794943516590781188,5,1794943516636246468);
INSERT INTO "processes" VALUES('process_01a1eaf88b0e5c14f1e16c415ce1ec6d',1794943519521279619,8,1794943519576257022);
INSERT INTO "processes" VALUES('process_01a1eaf8ba607b8f0161146aca9e2cfd',1794943531634825787,14,1794943531740329596);
INSERT INTO "processes" VALUES('process_01a1eaf8cf5a5b14bac52f48a6220f39',1794943537341043389,20,1794943537599058770);
CREATE TABLE projects (
    name TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL
);
INSERT INTO "projects" VALUES('default',1794943513996545361);
CREATE TABLE pushes (
    task TEXT NOT NULL,
    id TEXT NOT NULL,
    body BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (task, id)
);
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    labels INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
);
INSERT INTO "runs" VALUES('11d5487857ebf0e3d74a5f76277c16d67c7600558ec335ac0780723e35da9c66',4,1794943537525457145);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    caller TEXT NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    messages INTEGER NOT NULL,
    labels INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
INSERT INTO "sessions" VALUES('session_01a1eaf8d0bdb12334edf39d23b2ef16','assistant','key:admin','default','what time is it?',4,4,1794943537341536753,1794943537544581340);
CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO "settings" VALUES('node','node-4ac9a82b');
CREATE TABLE specs (
    hash TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    content BLOB NOT NULL,
    frozen_by TEXT NOT NULL,
    frozen_at INTEGER NOT NULL
);
CREATE TABLE task_events (
    task TEXT NOT NULL,
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (task, n)
);
CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    caller TEXT NOT NULL,
    context TEXT NOT NULL,
    session TEXT NOT NULL,
    message TEXT NOT NULL,
    state TEXT NOT NULL,
    final INTEGER NOT NULL,
    version INTEGER NOT NULL,
    process TEXT NOT NULL,
    labels INTEGER NOT NULL,
    size INTEGER NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
);
CREATE TABLE timers (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    due INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    body TEXT NOT NULL,
    party TEXT NOT NULL,
    place TEXT NOT NULL
);
CREATE TABLE turns (
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    run TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    speaker TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, seq)
);
INSERT INTO "turns" VALUES('session_01a1eaf8d0bdb12334edf39d23b2ef16',1,'run_01a1eaf8d0bd43c321307186088f472d',1794943537342087371,'user','{"text":"what time is it?"}');
INSERT INTO "turns" VALUES('session_01a1eaf8d0bdb12334edf39d23b2ef16',2,'run_01a1eaf8d0bd43c321307186088f472d',1794943537505864804,'agent','{"text":"","wishes":[{"id":"wish_01a1eaf8d15b22324fbe8762da1f0bc0","tool":"system_time","arguments":{}}]}');
INSERT INTO "turns" VALUES('session_01a1eaf8d0bdb12334edf39d23b2ef16',3,'run_01a1eaf8d0bd43c321307186088f472d',1794943537543705968,'tool','{"text":"2026-11-17T19:25:37+00:00","answers":"wish_01a1eaf8d15b22324fbe8762da1f0bc0"}');
INSERT INTO "turns" VALUES('session_01a1eaf8d0bdb12334edf39d23b2ef16',4,'run_01a1eaf8d0bd43c321307186088f472d',1794943537544370186,'agent','{"text":"2026-11-17T19:25:37+00:00"}');
CREATE VIEW task_audits AS
SELECT
    seq AS audit_id,
    NULLIF(task_id, '') AS task_id,
    level,
    event AS event_type,
    payload,
    context,
    strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000000000.0, 'unixepoch') AS created_at
FROM audit;
CREATE INDEX approvals_by_caller ON approvals (caller, tool, state);
CREATE INDEX blobs_by_expiry ON blobs (expires_at);
CREATE UNIQUE INDEX keys_in_force ON keys (name) WHERE revoked_at IS NULL;
CREATE UNIQUE INDEX sessions_by_name ON sessions (agent, caller, name);
CREATE INDEX sessions_by_time ON sessions (updated_at, id);
CREATE INDEX sessions_by_caller ON sessions (caller, updated_at, id);
CREATE INDEX sessions_by_agent ON sessions (agent, updated_at, id);
CREATE INDEX sessions_by_both ON sessions (caller, agent, updated_at, id);
CREATE INDEX agent_runs_by_session ON agent_runs (session, state);
CREATE INDEX agent_runs_under_way ON agent_runs (process) WHERE state = 'running';
CREATE INDEX agent_runs_by_agent ON agent_runs (agent, started_at);
CREATE UNIQUE INDEX tasks_by_message ON tasks (caller, agent, message) WHERE message <> '';
CREATE INDEX tasks_by_change ON tasks (caller, changed_at, id);
CREATE INDEX tasks_by_end ON tasks (final, seq);
CREATE INDEX tasks_by_session ON tasks (session);
CREATE INDEX timers_by_time ON timers (due);
CREATE INDEX timers_by_subject ON timers (kind, subject);
CREATE INDEX peer_tasks_by_context ON peer_tasks (peer, context);
CREATE INDEX peer_tasks_by_time ON peer_tasks (peer, seen_at);
CREATE INDEX agent_runs_by_task ON agent_runs (task) WHERE task <> '';
COMMIT;
